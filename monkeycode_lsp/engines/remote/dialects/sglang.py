"""SGLang: OpenAI's route with vLLM's ways to draw.

It overlooks `suffix`, unless it was started with a completion template: then it puts both halves into that, even a half
that was not given.  `rid`, `session_params` and `cache_salt` are not sent: its cache finds shared prefixes by itself.
"""

from __future__ import annotations

import asyncio

import msgspec

from monkeycode_lsp.domain import Priority
from monkeycode_lsp.engines.remote import facts
from monkeycode_lsp.engines.remote.dialects.base import Call, Fetch, Identity
from monkeycode_lsp.engines.remote.dialects.openai import Fields, OpenAI, identity, listed
from monkeycode_lsp.engines.remote.dialects.vllm import sampling
from monkeycode_lsp.errors import EngineError

_PAGE_S = 1.0
"""It has its facts at hand; where they do not come, it is asked as if it had none."""


class _Facts(msgspec.Struct):
    """What it was started with."""

    completion_template: str | None = None
    enable_priority_scheduling: bool = False


class SGLang(OpenAI):
    """Completions in SGLang's form."""

    name = "sglang"
    confidence = "logprobs"
    optional = OpenAI.optional | {"priority", "min_p", "repetition_penalty", "logprobs"}

    def fields(self, call: Call) -> Fields:
        """An empty `suffix` is the only one that leaves a prompt alone.

        Which end of the scale is served first is a setting of the server, but a request without a priority always comes
        last: so only what is urgent has one.
        """
        more: Fields = {
            "suffix": call.suffix or "",
            "priority": 0 if call.priority is Priority.INTERACTIVE else None,
            "logprobs": 0,  # of what it says, and of nothing that it might have said; older ones give none
        }
        return super().fields(call) | sampling(call) | more

    async def identify(self, fetch: Fetch, model: str) -> Identity:
        """Its list tells the window as well.  A server without priorities may refuse whatever has one, in the middle of a stream."""
        known = identity(await listed(fetch, model), model)
        started = await _facts(fetch)
        without = frozenset[str]() if started.enable_priority_scheduling else frozenset({"priority"})
        return msgspec.structs.replace(known, inserts=bool(started.completion_template), without=without)


async def _facts(fetch: Fetch) -> _Facts:
    try:
        async with asyncio.timeout(_PAGE_S):
            body = await fetch("/get_server_info", None)
    except (EngineError, TimeoutError):
        body = None  # only the administrator's key may open this page
    return facts.read(body, _Facts) or _Facts()
