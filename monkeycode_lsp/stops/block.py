"""The end of a block: its closing brace, a dedent, a blank line that leaves it, or the longest that is shown.

Where the user has opened the block on the cursor's line, its end is certain.  In an empty line nobody
knows how far the gap reaches: a likely end is kept in mind, and counts if the model runs on beyond it.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from monkeycode_lsp.domain import Window
from monkeycode_lsp.filters import brackets, following
from monkeycode_lsp.filters.indentation import n_columns
from monkeycode_lsp.stops.amount import MOST_BLANK, MOST_LINES, OPENS, Plan, opens
from monkeycode_lsp.stops.values import Line, Stop, lines

_CLOSES = re.compile(r"[\])}]|</|(?:end|fi|done|esac)\b")
_WORDS = ("else", "elif", "elsif", "elseif", "except", "finally", "catch", "rescue", "ensure", "case", "default", "when")
_GOES_ON = re.compile(rf"(?:{'|'.join(_WORDS)})\b")
_MOST_APART = 3
"""More blank lines than any style puts between two definitions."""


_MOST_HEAD = 20
"""Lines of a statement that opens a block."""
_STEP_OUTSIDE = 2
"""Lines outside everything, where what follows is inside of something, try the patience sooner."""
_MOST_SCANNED = MOST_LINES * (_MOST_APART + 1)


class _Gap(msgspec.Struct, frozen=True):
    """What is to be filled."""

    least: int | None
    """The column below which a line has left the block; None: that of the first line."""
    floor: int
    """The least column of a line that can stand before the text that follows."""
    has_opened: bool
    """Whether the block was opened on the cursor's line."""
    is_inside: bool
    """Whether the very next line stands inside of something."""
    may_be_flat: bool = False
    """Whether what was opened has an end of its own, so that its lines need not stand deeper: `namespace x {`."""


def end(text: str, window: Window, plan: Plan, *, is_broken_off: bool) -> Stop | None:
    """Where the block ends; None: it goes on.  `is_broken_off`: it comes no further, so a likely end will do."""
    gap = _gap(window)
    least = gap.least
    depths = _depths(text, window.language)
    likely: Stop | None = None
    n = n_blank = n_beyond = kept = 0
    for index, line in enumerate(lines(text)):
        if line.is_blank:
            n_blank += line.is_whole
            if n_blank >= (_MOST_APART + 1 if n else MOST_BLANK):
                return likely or Stop(kept, "blank lines")
            continue
        columns = n_columns(line.text if index else window.line_before + line.text)
        if least is None or (not n and gap.may_be_flat and columns == least - 1 and not _CLOSES.match(line.text.lstrip())):
            least = columns
        elif line.is_whole and gap.may_be_flat and least != gap.least and _closes_more(text[: line.end], window.language):
            return Stop(line.end, "the end of the block")
        elif 0 < index <= len(depths) and not depths[index - 1]:
            found = _left(line, columns, gap, least=least, n_blank=n_blank, kept=kept)
            if found is not None and (gap.has_opened or not plan.patience):
                return found
            likely = likely or found
        if not line.is_whole:
            break
        n += 1
        n_beyond += _step(line, columns, gap) if likely is not None else 0
        n_blank = 0
        kept = line.end
        if n >= plan.max_lines or n_beyond > plan.patience:
            return _ran_on(likely, n_beyond) if likely else Stop(kept, "the longest that is shown")
    return likely if is_broken_off else None


def _step(line: Line, columns: int, gap: _Gap) -> int:
    """How much a line beyond a likely end tries the patience."""
    return _STEP_OUTSIDE if columns == 0 and gap.is_inside and not OPENS.search(line.text) else 1


def _depths(text: str, language: str) -> list[bool]:
    """Of each line whether a bracket is open at its end; of no more lines than can count."""
    if "\n" not in text:
        return []
    head = "\n".join(text.split("\n", _MOST_SCANNED)[:_MOST_SCANNED])
    return brackets.open_at_line_ends(head + "\n", language)


def _ran_on(likely: Stop, n_beyond: int) -> Stop:
    return Stop(likely.at, likely.reason, ran_on=n_beyond > _STEP_OUTSIDE)


def _gap(window: Window) -> _Gap:
    has_begun = bool(window.line_before.strip())
    has_opened = has_begun and opens(window)
    below = following.ahead(window)
    # What follows, if anything, may stand apart: column 0 begins something new.
    is_apart = not below or (n_columns(below[0]) == 0 and not window.suffix.startswith("\n" + below[0]))
    return _Gap(
        least=_head_columns(window.prefix, window.language) + has_opened if has_begun else None,
        floor=1 if is_apart else n_columns(below[0]),
        has_opened=has_opened,
        is_inside=bool(below) and n_columns(below[0]) > 1 and window.suffix.startswith("\n" + below[0]),
        may_be_flat=has_opened and window.line_before.rstrip().endswith("{"),
    )


@lru_cache(maxsize=8)
def _head_columns(prefix: str, language: str) -> int:
    """Where the statement begins that the prefix ends in: lines that go on with it may stand deeper than its block."""
    above = prefix.split("\n")[-_MOST_HEAD:]
    at = len(above) - 1
    while at and (above[at - 1].endswith("\\") or brackets.balance("\n".join(above[at:]), language).extra):
        at -= 1
    return n_columns(above[at])


def _closes_more(text: str, language: str) -> bool:
    """Whether `text` closes more braces than it opens."""
    return "}" in text and bool(brackets.balance(text, language).extra)


def _left(line: Line, columns: int, gap: _Gap, *, least: int, n_blank: int, kept: int) -> Stop | None:
    """Where the block ended if `line` has left it."""
    if n_blank and (least == 0 or n_blank > 1):
        return Stop(kept, "a blank line")
    if columns >= least:
        return None
    said = line.text.lstrip()
    if _CLOSES.match(said):
        ends_here = gap.has_opened and line.is_whole and not OPENS.search(said)
        return Stop(line.end, "the end of the block") if ends_here else None
    if _GOES_ON.match(said) and not n_blank:
        return None
    if gap.has_opened or n_blank:
        may_stay = not line.is_whole and _is_beginning(said)
    else:
        # Shallower than the text that follows: good only where it opens a block again.
        may_stay = columns >= gap.floor or not line.is_whole or OPENS.search(said) is not None
    return None if may_stay else Stop(kept, "the end of the block")


def _is_beginning(said: str) -> bool:
    """Whether a word that goes on with the block may still come out of it."""
    return any(word.startswith(said) for word in (*_WORDS, "end"))
