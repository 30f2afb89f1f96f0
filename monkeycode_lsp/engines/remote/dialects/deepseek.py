"""DeepSeek's beta of OpenAI's route: both halves as they are."""

from __future__ import annotations

from monkeycode_lsp.engines.remote.dialects.base import Call, Fetch, Identity
from monkeycode_lsp.engines.remote.dialects.openai import Fields, OpenAI, listed

HOSTS = frozenset({"api.deepseek.com"})
_MODEL = "deepseek-chat"


class DeepSeek(OpenAI):
    """Completions in DeepSeek's form."""

    name = "deepseek"
    marks = False
    confidence = "logprobs"
    optional = OpenAI.optional | {"logprobs"}

    def path(self, call: Call) -> str:  # noqa: ARG002 - the same for every call
        """See `Dialect.path`."""
        return "/beta/completions"

    def fields(self, call: Call) -> Fields:
        """See `OpenAI.fields`."""
        return super().fields(call) | {"logprobs": 1}

    async def identify(self, fetch: Fetch, model: str) -> Identity:
        """Models that think before they answer cannot fill in."""
        if not model:
            names = [card.id for card in await listed(fetch, model)]
            model = next((name for name in names if "reason" not in name), _MODEL)
        return Identity(model, None, inserts=True)
