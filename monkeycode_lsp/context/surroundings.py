"""The document's text beyond the window, as far as it decides how the window's text is to be parsed (pure)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from monkeycode_lsp.domain import Snapshot, Window
from monkeycode_lsp.text import lf

MOST_BEFORE = 16_000
MOST_AFTER = 8_000
"""Characters: what is parsed while the event loop waits takes about 1.5 ms."""
_MOST_LINES = 2_000


class Surroundings(msgspec.Struct, frozen=True):
    """What stands right before the window's prefix and right after its suffix.  LF only."""

    before: str = ""
    after: str = ""
    cut_before: bool = False
    """Whether the document has more above."""
    cut_after: bool = False
    """Whether it has more below."""


def of(snapshot: Snapshot, window: Window) -> Surroundings:
    """Up to the limits, from a line that stands at the left margin; nothing where a whole notebook makes up the window."""
    lines = snapshot.lines
    first = snapshot.line - window.prefix.count("\n")
    last = snapshot.line + window.suffix.count("\n")
    # A line of which the window has only a part is too long to say anything.
    is_cut = window.whole_prefix or first <= 0 or not lines[first].startswith(window.prefix.partition("\n")[0])
    before, start = ("", first) if is_cut else _before(lines, first)
    ends_inside = window.whole_suffix or last >= len(lines) or not lines[last].rstrip("\r\n").endswith(window.suffix.rpartition("\n")[2])
    after, end = ("", last) if ends_inside else _after(lines, last, is_begun=not window.suffix.endswith("\n"))
    cut_before = not window.whole_prefix and start > 0
    return Surroundings(before, after, cut_before, cut_after=not window.whole_suffix and end < len(lines))


def _before(lines: Sequence[str], end: int) -> tuple[str, int]:
    start, left, n = end, MOST_BEFORE, 0
    margin = end
    while start > 0 and n < _MOST_LINES:
        line = lines[start - 1]
        left -= len(line)
        if left < 0:
            break
        start, n = start - 1, n + 1
        if line[:1].strip():
            margin = start
    first = 0 if start == 0 else margin
    return lf("".join(lines[first:end])), first


def _after(lines: Sequence[str], last: int, *, is_begun: bool) -> tuple[str, int]:
    """What follows, and the line at which it ends; the window has line `last` if it `is_begun`, else only what is before it."""
    start = last + is_begun
    end, left = start, MOST_AFTER
    while end < len(lines) and end - start < _MOST_LINES:
        left -= len(lines[end])
        if left < 0:
            break
        end += 1
    text = lf("".join(lines[start:end]))
    return ("\n" + text if is_begun else text), end
