"""Endless repeats: what a small model says when it does not know how to end."""

from __future__ import annotations

import re

from monkeycode_lsp.domain import Window

_TIMES = 3
_LONGEST_BLOCK = 4
_MOST_LINES = 40
"""No suggestion has as many, so no repeat is looked for beyond."""
_LONG_RUN = 120
_LONG_RULER = 360
"""Rulers and blanks of a table are longer than any repeated words."""
_LONGEST_UNIT = 30
_NUMBER = re.compile(r"(?<![\w\"'#])\d*\.?\d{24,}")
"""More digits than any type holds; a quintillion of the smallest unit of money, which is written out, has nineteen."""
_LONGEST_PERIOD = 3
_STRING = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\\n])*`")
_QUOTE = re.compile(r"[\"'`]")


def start(text: str, window: Window) -> int | None:
    """Where the first repeat begins, after one copy; None: nothing is repeated."""
    found = [at for at in (_lines(text), _inside_line(text), _digits(text, window)) if at is not None]
    return min(found, default=None)


def _lines(text: str) -> int | None:
    """The same one to four lines, three times in a row."""
    if text.count("\n") < _TIMES - 1:
        return None
    lines = text.split("\n", _MOST_LINES)[:_MOST_LINES]
    ends = [0]
    for line in lines:
        ends.append(ends[-1] + len(line) + 1)
    for size in range(1, _LONGEST_BLOCK + 1):
        for first in range(len(lines) - size * _TIMES + 1):
            if lines[first] != lines[first + size]:
                continue
            block = lines[first : first + size]
            is_same = all(lines[first + size * n : first + size * (n + 1)] == block for n in range(1, _TIMES))
            # Closing brackets and rulers repeat in good code.
            if is_same and any(char.isalnum() for line in block for char in line):
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
    if not any(char.isalnum() for char in tail[:period]) and len(line) - first < _LONG_RULER:
        return None
    return len(text) - len(line) + first + period


def _digits(text: str, window: Window) -> int | None:
    """The line of a number that does not end: `1000000000000000000000000…`; what stands in quotes is none."""
    for match in _NUMBER.finditer(text):
        first = text.rfind("\n", 0, match.start()) + 1
        before = text[first : match.start()] if first else window.line_before + text[: match.start()]
        if _QUOTE.search(_STRING.sub("", before)):
            continue
        tail = match.group()[-_LONGEST_PERIOD * 4 :]
        if any(tail[period:] == tail[:-period] for period in range(1, _LONGEST_PERIOD + 1)):
            return max(0, text.rfind("\n", 0, match.start()))
    return None


def without_repeats(text: str, window: Window) -> str:
    """One copy of what is said again and again; nothing of a line with a number without end."""
    return text[: start(text, window)]
