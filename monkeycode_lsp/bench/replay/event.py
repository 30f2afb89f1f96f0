"""One change that an editor sends: made in the document, and told as what was replaced by what."""

from __future__ import annotations

import msgspec

from monkeycode_lsp.bench.replay.trace import Patch
from monkeycode_lsp.text import Change, Document, lf


class Position(msgspec.Struct, frozen=True):
    """In units that were agreed on."""

    line: int
    character: int


class Range(msgspec.Struct, frozen=True):
    """What is replaced."""

    start: Position
    end: Position


class Event(msgspec.Struct, frozen=True):
    """Without a range, the text is the whole new document."""

    text: str
    range: Range | None = None


def followed(document: Document, event: Event) -> list[Patch]:
    """Make the change; what was changed, as offsets."""
    text = lf(event.text)
    if event.range is None:
        before = document.text
        document.apply(Change(text))
        return _difference(before, text)
    start, end = ((at.line, at.character) for at in (event.range.start, event.range.end))
    lines = document.share()
    first, last = sorted(document.locate(*at) for at in (start, end))
    position = sum(map(len, lines[: first[0]])) + first[1]
    n_deleted = sum(map(len, lines[first[0] : last[0]])) + last[1] - first[1]
    document.apply(Change(text, start, end))
    return [Patch(position, n_deleted, text)] if n_deleted or text else []


def _difference(before: str, after: str) -> list[Patch]:
    """One replacement that makes the one text of the other."""
    n_shorter = min(len(before), len(after))
    first = next((at for at in range(n_shorter) if before[at] != after[at]), n_shorter)
    n_same = next((n for n in range(n_shorter - first) if before[-1 - n] != after[-1 - n]), n_shorter - first)
    patch = Patch(first, len(before) - first - n_same, after[first : len(after) - n_same])
    return [patch] if patch.deleted or patch.inserted else []
