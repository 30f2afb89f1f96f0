"""Mistral's `/v1/fim/completions`: both halves as they are, an answer in the form of a chat."""

from __future__ import annotations

from monkeycode_lsp.engines.remote.dialects.base import Call, Fetch, Identity
from monkeycode_lsp.engines.remote.dialects.openai import Fields, OpenAI

HOSTS = frozenset({"api.mistral.ai", "codestral.mistral.ai"})
_MODEL = "codestral-latest"
"""The host that is for Codestral only has no list of models."""
_HOTTEST = 1.5


class Mistral(OpenAI):
    """Completions in Mistral's form."""

    name = "mistral"
    marks = False
    optional = frozenset({"top_p", "stop", "random_seed"})

    def path(self, call: Call) -> str:  # noqa: ARG002 - the same for every call
        """See `Dialect.path`."""
        return "/v1/fim/completions"

    def fields(self, call: Call) -> Fields:
        """Usage comes unasked; a temperature above 1.5 is refused."""
        fields = super().fields(call)
        seed = fields.pop("seed")
        del fields["stream_options"]
        return fields | {"temperature": min(call.sampling.temperature, _HOTTEST), "random_seed": seed}

    async def identify(self, fetch: Fetch, model: str) -> Identity:  # noqa: ARG002 - there is nothing to ask
        """The first model in the list is seldom one that fills in, so the one that does is taken."""
        return Identity(model or _MODEL, None, inserts=True)
