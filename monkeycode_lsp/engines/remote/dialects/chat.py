"""A server that only chats: its model is asked in words to say what belongs into the gap of a text.

What such models put around code (Markdown, thoughts, the line that is there already) is cut away by the filters, as
for every other answer; a model that goes on to repeat the text is stopped where it comes to the gap.
"""

from __future__ import annotations

import msgspec

from monkeycode_lsp.engines.remote.dialects.base import Call, Fetch, Identity, Piece
from monkeycode_lsp.engines.remote.dialects.openai import MOST_STOPS, Fields, OpenAI, identity, listed

_RULE = (
    "You complete code. The user sends a text with one gap, written as {gap}. "
    "Reply with exactly the characters that belong in place of {gap} and with nothing else: no explanation, no Markdown, "
    "nothing of what already stands before or after it. Keep to the text's indentation and style, and stop as soon as the "
    "statement or block is complete. If nothing is missing, reply with nothing."
)
_EXAMPLE = ("def add(a, b):\n    return {gap}\n\nprint(add(1, 2))\n", "a + b")
_WORDS = 130
"""Tokens of the rule, the example and the template around them, as most models count them."""


class Chat(OpenAI):
    """Completions out of a chat."""

    name = "chat"
    marks = False
    optional = frozenset({"stream_options", "top_p", "stop", "seed", "temperature", "max_tokens"})

    def path(self, call: Call) -> str:  # noqa: ARG002 - the same for every call
        """See `Dialect.path`."""
        return "/v1/chat/completions"

    def body(self, call: Call, without: frozenset[str] = frozenset()) -> bytes:
        """The limit has another name for newer models, which refuse the older one."""
        return super().body(call, without if "max_tokens" in without else without | {"max_completion_tokens"})

    def fields(self, call: Call) -> Fields:
        """See `OpenAI.fields`."""
        fields = super().fields(call)
        del fields["prompt"], fields["suffix"]
        gap = _gap(call)
        asked, answered = _EXAMPLE
        return fields | {
            "messages": [
                {"role": "system", "content": _RULE.format(gap=gap)},
                {"role": "user", "content": asked.format(gap=gap)},
                {"role": "assistant", "content": answered},
                {"role": "user", "content": f"{call.text}{gap}{call.suffix or ''}"},
            ],
            "stop": (gap, *call.stop)[:MOST_STOPS],
            "max_completion_tokens": call.max_tokens,
        }

    def read(self, data: bytes) -> Piece:
        """Our own words are no part of what the user's text takes."""
        piece = super().read(data)
        n_tokens = piece.usage.prompt_tokens if piece.usage is not None else None
        if piece.usage is None or n_tokens is None:
            return piece
        return msgspec.structs.replace(piece, usage=msgspec.structs.replace(piece.usage, whole=max(0, n_tokens - _WORDS)))

    async def identify(self, fetch: Fetch, model: str) -> Identity:
        """Its model sees no markers, so it has no family."""
        known = identity(await listed(fetch, model), model)
        return Identity(known.model, None, known.context_tokens, inserts=True)


def _gap(call: Call) -> str:
    """A word for the gap that does not occur in the text."""
    number, gap = 1, "<GAP>"
    while gap in call.text or gap in (call.suffix or ""):
        number += 1
        gap = f"<GAP-{number}>"
    return gap
