"""Endless repeats: what a small model says when it does not know how to end."""

from __future__ import annotations

from monkeycode_lsp.domain import Window

_TIMES = 3
_LONGEST_BLOCK = 4
_LONG_RUN = 120
_LONGEST_UNIT = 30


def start(text: str) -> int | None:
    """Where the first repeat begins, after one copy; None: nothing is repeated."""
    found = [at for at in (_lines(text), _inside_line(text)) if at is not None]
    return min(found, default=None)


def _lines(text: str) -> int | None:
    """The same one to four lines, three times in a row."""
    lines = text.split("\n")
    ends = [0]
    for line in lines:
        ends.append(ends[-1] + len(line) + 1)
    for size in range(1, _LONGEST_BLOCK + 1):
        for first in range(len(lines) - size * _TIMES + 1):
            block = lines[first : first + size]
            # Closing brackets and rulers repeat in good code.
            if not any(char.isalnum() for line in block for char in line):
                continue
            if all(lines[first + size * n : first + size * (n + 1)] == block for n in range(1, _TIMES)):
                return ends[first + size] - 1
    return None


def _inside_line(text: str) -> int | None:
    """A few characters again and again, up to where the text stands now."""
    line = text[text.rfind("\n") + 1 :]
    tail = line[-_LONG_RUN:]
    if len(tail) < _LONG_RUN:
        return None
    period = next((size for size in range(1, _LONGEST_UNIT + 1) if tail[size:] == tail[:-size]), None)
    if period is None:
        return None
    first = len(line) - _LONG_RUN
    while first > 0 and line[first - 1] == line[first - 1 + period]:
        first -= 1
    return len(text) - len(line) + first + period


def without_repeats(text: str, _window: Window) -> str:
    """One copy of what is said again and again."""
    return text[: start(text)]
