"""Answers that run on into the lines that already follow."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from functools import lru_cache

from monkeycode_lsp.domain import Window
from monkeycode_lsp.filters.indentation import n_columns

_TELLING = 6
"""So many letters and digits in equal lines are no chance: `return a` is enough, `else:` is not."""
_AHEAD = 4
_MOST_LINES = 40
"""No suggestion has as many."""
_CLOSES = re.compile(r"\s*(?:[\])}]+[;,]?|end|fi|done|esac|</[\w.-]+>)\s*")
_COMMON = re.compile(
    r"\s*(?:(?:return|break|continue|pass|raise|else|try|finally|yield)(?: (?:none|true|false|null|nil|self|this|[01]))?|@\w+)[:;{ ]*",
    re.IGNORECASE,
)
"""Lines of which a file holds many."""
_CONDITIONAL = re.compile(r"\s*#\s*(?:endif|else)\b")
"""Of the preprocessor; their indentation comes after the mark."""
_LEAVES = re.compile(r"\s*(?:return|break|continue|raise|throw|goto)\b")
_INK = re.compile(r"[\s;,]+")


@lru_cache(maxsize=8)
def _ahead(suffix: str) -> tuple[str, ...]:
    lines = (line.rstrip() for line in itertools.islice(suffix.split("\n", 40), 1, 40))
    return tuple(itertools.islice(filter(None, lines), _AHEAD))


def ahead(window: Window) -> tuple[str, ...]:
    """The next lines with text on them, below the cursor's."""
    return _ahead(window.suffix)


def start(text: str, window: Window, *, whole: bool, n_sure: int = 2) -> int | None:
    """Where `text` begins to say the lines that follow.

    Sure is what says `n_sure` of them, or all that there are.  Of a `whole` text it is enough if it ends with them;
    while it is not whole, its last line may still grow.
    """
    follow = ahead(window)
    if not follow:
        return None
    lines = text.split("\n", _MOST_LINES)
    offset = 0
    for index, line in enumerate(lines):
        said = window.line_before + line if index == 0 else line
        is_whole = whole or index < len(lines) - 1
        is_own = index > 0 or not window.line_before.strip()
        if is_own and is_whole and said.rstrip() == follow[0]:
            more = lines[index + 1 :] if whole else lines[index + 1 : -1]
            if _repeats([said, *more], follow, window, is_first=index == 0, whole=whole, n_sure=n_sure):
                return max(offset - 1, 0)
        offset += len(line) + 1
    return None


def _repeats(lines: Sequence[str], follow: Sequence[str], window: Window, *, is_first: bool, whole: bool, n_sure: int) -> bool:
    """Whether enough of `lines` is `follow` to be no chance."""
    said = [line.rstrip() for line in lines if line.strip()]
    n_known = min(len(said), len(follow))
    n_equal = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(said, follow, strict=False)))
    least = min(n_sure, len(follow))
    if whole:
        # An answer that only begins like the next line is often its sister.
        least = n_known if is_first else min(n_known, least)
    elif is_first:
        least = min(2, len(follow))
    if n_equal < least or (is_first and _stands_above(follow[0], window)):
        return False
    if whole and not is_first and n_equal == len(said) and _LEAVES.match(said[0]):
        return True  # Twice the same way out, one below the other, is never meant.
    return sum(_n_telling(line) for line in said[:n_equal]) >= _TELLING


def _stands_above(line: str, window: Window) -> bool:
    """Whether the last line above the cursor's is the same as well: rows of equal lines are meant."""
    above = window.prefix[: len(window.prefix) - len(window.line_before)].rstrip()
    return above[above.rfind("\n") + 1 :] == line


def _n_telling(line: str) -> int:
    return 0 if _COMMON.fullmatch(line) else sum(char.isalnum() for char in line)


def without_following_lines(text: str, window: Window) -> str:
    """`a += 1` and `return a`, before `return a` → `a += 1`."""
    return text[: start(text, window, whole=True)]


def without_closing_line(text: str, window: Window) -> str:
    """A last line that only closes, directly before the same one."""
    follow = ahead(window)
    head, newline, last = text.rstrip().rpartition("\n")
    return head if newline and follow and last == follow[0] and _CLOSES.fullmatch(last) else text


def unless_said_below(text: str, window: Window) -> str:
    """Nothing where the answer differs from the next lines in blanks and commas only."""
    if window.line_before.strip():
        return text
    follow = ahead(window)
    lines = [line for line in (window.line_before + text).split("\n") if line.strip()][:3]
    if not follow or not lines or n_columns(lines[0]) != n_columns(follow[0]):
        return text
    said = [_INK.sub("", line) for line in lines]
    is_same = said == [_INK.sub("", line) for line in follow[: len(said)]]
    is_chance = _CONDITIONAL.match(follow[0]) is not None or _stands_above(follow[0], window)
    return "" if is_same and sum(len(line) for line in said) >= _TELLING and not is_chance else text
