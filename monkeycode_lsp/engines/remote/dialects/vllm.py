"""vLLM: OpenAI's route with more ways to draw, and a priority.

It takes what is not said from the model's own `generation_config.json`, where chat models like to punish repetition: code
repeats itself, so it is always said.  `cache_salt` is not sent: it would keep colleagues from sharing the cache of
prefixes.  Neither is a session: no release that is in use does anything with one.
"""

from __future__ import annotations

from monkeycode_lsp.engines.remote.dialects.base import Call, Fetch, Identity
from monkeycode_lsp.engines.remote.dialects.openai import Fields, OpenAI, identity, listed


class VLLM(OpenAI):
    """Completions in vLLM's form."""

    name = "vllm"
    optional = OpenAI.optional | {"priority", "min_p", "repetition_penalty"}

    def fields(self, call: Call) -> Fields:
        """Lower is served first; what is not urgent says so, and a server without such a policy refuses the field once."""
        return super().fields(call) | sampling(call) | {"priority": int(call.priority) or None}

    async def identify(self, fetch: Fetch, model: str) -> Identity:
        """Its list tells the window as well."""
        return identity(await listed(fetch, model), model)


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
