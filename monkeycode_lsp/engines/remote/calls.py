"""What is asked of one server, out of a prompt: as one text with markers, as two halves, or as the first half only.  Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec

from monkeycode_lsp import prompt
from monkeycode_lsp.domain import Plain, Prompt
from monkeycode_lsp.engines.remote.dialects.base import Call


class Asked(msgspec.Struct, frozen=True):
    """A call, and the way back from its answer to the user's own text."""

    call: Call
    restore: Callable[[str], str]
    is_cut: bool = False
    """The text after the cursor could not be given."""


def build(asked: Prompt, model: str, *, may_insert: bool, marks: bool = True, slot: int | None = None) -> Asked:
    """`may_insert`: the server takes the text after the cursor as a field of its own.  `marks`: it takes markers."""
    if asked.fim and not marks:
        asked = msgspec.structs.replace(asked, segments=(Plain(asked.prefix),), fim=False)
    wire = prompt.as_text(asked)
    call = Call(
        wire.text,
        is_marked=asked.fim,
        stop=asked.stop,
        max_tokens=asked.max_tokens,
        sampling=asked.sampling,
        model=model,
        priority=asked.priority,
        session=_digest(asked.session),
        slot=slot,
    )
    if asked.fim or not asked.suffix:
        return Asked(call, wire.restore)
    if not may_insert:
        return Asked(call, wire.restore, is_cut=True)
    after = prompt.as_text(msgspec.structs.replace(asked, segments=(Plain(asked.suffix),)))
    return Asked(msgspec.structs.replace(call, suffix=after.text), lambda text: after.restore(wire.restore(text)))


def _digest(session: str) -> str:
    return hashlib.blake2b(session.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest() if session else ""
