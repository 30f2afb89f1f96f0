"""TensorRT-LLM's own server (`trtllm-serve`): OpenAI's route, with vLLM's ways to draw and a priority from 0 to 1.

It refuses every field that it does not know, so nothing else is sent.
"""

from __future__ import annotations

from monkeycode_lsp.domain import Priority
from monkeycode_lsp.engines.remote.dialects.base import Call, Fetch, Identity
from monkeycode_lsp.engines.remote.dialects.openai import Fields, OpenAI, identity, listed
from monkeycode_lsp.engines.remote.dialects.vllm import sampling

_PRIORITIES = {Priority.LOOK_AHEAD: 0.4, Priority.WARM_UP: 0.3, Priority.BATCH: 0.2}
"""Higher is served first; without one it is 0.5, which is right for what is urgent."""


class TensorRT(OpenAI):
    """Completions in TensorRT-LLM's form."""

    name = "tensorrt-llm"
    inserts = False
    """`suffix` has a place in its requests, but is refused."""
    optional = OpenAI.optional | {"priority", "min_p", "repetition_penalty"}

    def fields(self, call: Call) -> Fields:
        """See `OpenAI.fields`."""
        return super().fields(call) | sampling(call) | {"priority": _PRIORITIES.get(call.priority)}

    async def identify(self, fetch: Fetch, model: str) -> Identity:
        """The route wants a name, so the list is asked even where the name does not matter."""
        return identity(await listed(fetch, model), model)
