"""SGLang: OpenAI's route with vLLM's ways to draw.

It overlooks `suffix`, unless it was started with a completion template: then it puts both halves into that, even a half
that was not given.  `rid`, `session_params` and `cache_salt` are not sent: its cache finds shared prefixes by itself.
"""

from __future__ import annotations

import msgspec

from monkeycode_lsp.domain import Priority
from monkeycode_lsp.engines.remote.dialects.base import Call, Fetch, Identity
from monkeycode_lsp.engines.remote.dialects.openai import Fields, OpenAI, identity, listed
from monkeycode_lsp.engines.remote.dialects.vllm import sampling
from monkeycode_lsp.errors import EngineError


class _Facts(msgspec.Struct):
    completion_template: str | None = None


class SGLang(OpenAI):
    """Completions in SGLang's form."""

    name = "sglang"
    optional = OpenAI.optional | {"priority", "min_p", "repetition_penalty"}

    def fields(self, call: Call) -> Fields:
        """An empty `suffix` is the only one that leaves a prompt alone.

        Which end of the scale is served first is a setting of the server, but a request without a priority always comes
        last: so only what is urgent has one.
        """
        more: Fields = {"suffix": call.suffix or "", "priority": 0 if call.priority is Priority.INTERACTIVE else None}
        return super().fields(call) | sampling(call) | more

    async def identify(self, fetch: Fetch, model: str) -> Identity:
        """Its list tells the window as well; whether it can insert matters only where the markers are not known."""
        known = identity(await listed(fetch, model), model)
        return known if known.family else msgspec.structs.replace(known, inserts=await _has_template(fetch))


async def _has_template(fetch: Fetch) -> bool:
    try:
        body = await fetch("/get_server_info", None)
        return bool(body and msgspec.json.decode(body, type=_Facts).completion_template)
    except (EngineError, msgspec.DecodeError):
        return False
