"""vLLM: OpenAI's route with more ways to draw, and a priority.

It takes what is not said from the model's own `generation_config.json`, where chat models like to punish repetition: code
repeats itself, so it is always said.  `cache_salt` is not sent: it would keep colleagues from sharing the cache of
prefixes.  Neither is a session: no release that is in use does anything with one.
"""

from __future__ import annotations

import asyncio
import re

import msgspec

from monkeycode_lsp.engines.remote import facts
from monkeycode_lsp.engines.remote.dialects.base import Call, Fetch, Identity
from monkeycode_lsp.engines.remote.dialects.openai import Fields, OpenAI, identity, listed
from monkeycode_lsp.errors import EngineError

_SCORES_DRAFTS = (0, 14)
"""The first release whose speculative decoding goes on when log-probabilities are asked for."""
_RELEASE = re.compile(r"(\d{1,4})\.(\d{1,4})")
_PAGE_S = 1.0
"""It has its version at hand."""


class _Version(msgspec.Struct):
    version: str = ""


class VLLM(OpenAI):
    """Completions in vLLM's form."""

    name = "vllm"
    confidence = "logprobs"
    optional = OpenAI.optional | {"priority", "min_p", "repetition_penalty", "logprobs"}

    def fields(self, call: Call) -> Fields:
        """Lower is served first; what is not urgent says so, and a server without such a policy refuses the field once."""
        return super().fields(call) | sampling(call) | {"priority": int(call.priority) or None, "logprobs": 0}

    async def identify(self, fetch: Fetch, model: str) -> Identity:
        """Its list tells the window as well.  Releases that draft nothing for a request with log-probabilities are not asked for them."""
        known = identity(await listed(fetch, model), model)
        without = frozenset[str]() if await _release(fetch) >= _SCORES_DRAFTS else frozenset({"logprobs"})
        return msgspec.structs.replace(known, without=without)


async def _release(fetch: Fetch) -> tuple[int, int]:
    """(0, 0): it does not say."""
    try:
        async with asyncio.timeout(_PAGE_S):
            told = facts.read(await fetch("/version", None), _Version) or _Version()
    except (EngineError, TimeoutError):
        told = _Version()
    found = _RELEASE.match(told.version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def sampling(call: Call) -> Fields:
    """How vLLM and its relatives call the rest of the sampling.

    Where nothing is drawn, only the penalty has an effect; speculative decoding refuses `min_p`.
    """
    drawn = call.sampling.temperature > 0
    return {
        "top_p": call.sampling.top_p if drawn else None,
        "min_p": call.sampling.min_p if drawn else None,
        "repetition_penalty": call.sampling.repeat_penalty,
    }
