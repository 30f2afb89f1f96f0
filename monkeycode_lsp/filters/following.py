"""Answers that run on into the lines that already follow."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from monkeycode_lsp.domain import Window

_TELLING = 6
"""So many letters and digits in equal lines are no chance: `return a` is enough, `else:` is not."""
_AHEAD = 4
_CLOSES = re.compile(r"\s*(?:[\])}]+[;,]?|end|fi|done|esac|</[\w.-]+>)\s*")
_COMMON = re.compile(
    r"\s*(?:(?:return|break|continue|pass|raise|else|try|finally|yield)(?: (?:none|true|false|null|nil|self|this|[01]))?|@\w+)[:;{ ]*",
    re.IGNORECASE,
)
"""Lines of which a file holds many."""
_INK = re.compile(r"[\s;,]+")


def ahead(window: Window) -> list[str]:
    """The next lines with text on them, below the cursor's."""
    lines = (line.rstrip() for line in itertools.islice(window.suffix.split("\n"), 1, 40))
    return list(itertools.islice(filter(None, lines), _AHEAD))


def start(text: str, window: Window, *, whole: bool) -> int | None:
    """Where `text` begins to say the lines that follow.  While it is not `whole`, its last line may still grow."""
    follow = ahead(window)
    if not follow:
        return None
    lines = text.split("\n")
    offset = 0
    for index, line in enumerate(lines):
        said = window.line_before + line if index == 0 else line
        more = lines[index + 1 :] if whole else lines[index + 1 : -1]
        is_whole = whole or index < len(lines) - 1
        is_own = index > 0 or not window.line_before.strip()
        if is_own and is_whole and said.rstrip() == follow[0] and _repeats([said, *more], follow, is_first=index == 0, whole=whole):
            return max(offset - 1, 0)
        offset += len(line) + 1
    return None


def _repeats(lines: Sequence[str], follow: Sequence[str], *, is_first: bool, whole: bool) -> bool:
    """Whether enough of `lines` is `follow` to be no chance."""
    said = [line.rstrip() for line in lines if line.strip()]
    n_known = min(len(said), len(follow))
    n_equal = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(said, follow, strict=False)))
    if is_first and n_equal < (n_known if whole else min(2, len(follow))):
        return False  # An answer that only begins like the next line is often its sister.
    return sum(_n_telling(line) for line in said[:n_equal]) >= _TELLING


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
    said = [_INK.sub("", line) for line in (window.line_before + text).split("\n") if line.strip()][:3]
    follow = [_INK.sub("", line) for line in ahead(window)[: len(said)]]
    is_same = said == follow and sum(len(line) for line in said) >= _TELLING
    return "" if is_same and not window.line_before.strip() else text
