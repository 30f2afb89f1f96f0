"""Where a text may be cut that is too long to be taken whole (pure).

A cut stands at a sensible place, never inside what is one character to a reader, and stays where it is while text is added at
the other end.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

_LEAST_BLOCK = 16
_JOINER = "\u200d"
_PLACE = re.compile(r"\s+|[,;:)\]}>]+\s*")


def roundest(low: int, high: int) -> int:
    """The number from `low` to `high` that can be divided by two most often."""
    step = 1
    while -(-low // (2 * step)) * 2 * step <= high and 2 * step <= high:
        step *= 2
    return -(-low // step) * step


def tail(text: str, length: int, count: Callable[[str], float], budget: float, *, slack: float) -> str:
    """The end of a line of `length` characters, of which `text` is the end, that fits the budget.

    Measured in blocks from the line's beginning, so that it begins at the same place while the line grows.
    """
    skipped, block = length - len(text), _block(budget)
    stop, left = length, budget
    costs: list[float] = []
    for start in range((length - 1) // block * block, skipped - 1, -block):
        cost = count(text[start - skipped : stop - skipped])
        if cost > left:
            break
        costs.append(cost)
        stop, left = start, left - cost
    if stop > length - block:
        n = _share(text[-block:], count, budget)
        return text[_whole(text, len(text) - n) :] if n else ""
    if stop == 0:
        return text
    last, given = stop // block, budget * slack
    for cost in costs[:0:-1]:
        given -= cost
        if given < 0:
            break
        last += 1
    return text[_sensible(text, roundest(stop // block, last) * block - skipped, block) :]


def head(text: str, length: int, count: Callable[[str], float], budget: float) -> str:
    """The beginning of a line of `length` characters, of which `text` is the beginning, that fits the budget.

    Measured in blocks from the line's end, so that it ends at the same place while the text before it grows or shrinks.
    """
    block = _block(budget)
    stop, left = 0, budget
    for end in range(length % block or block, len(text) + 1, block):
        left -= count(text[stop:end])
        if left < 0:
            break
        stop = end
    if stop == length:
        return text
    return text[: _whole(text, stop or _share(text[:block], count, budget), back=True)]


def _block(budget: float) -> int:
    """Characters in which a long line is measured: about a tenth of what fits."""
    return max(_LEAST_BLOCK, 1 << max(0, int(budget / 3).bit_length() - 1))


def _share(block: str, count: Callable[[str], float], budget: float) -> int:
    """How many characters of a block fit that does not fit whole."""
    return int(len(block) * min(1.0, budget / max(1.0, count(block))))


def _sensible(text: str, at: int, block: int) -> int:
    """A place at or soon after `at` where something new begins."""
    found = _PLACE.search(text, at, min(at + block, len(text) - 1))
    return _whole(text, found.end() if found else at)


def _whole(text: str, at: int, *, back: bool = False) -> int:
    """The next place (or the one before) that is not inside what is one character to a reader."""
    while 0 < at < len(text) and _joins(text[at - 1], text[at]):
        at += -1 if back else 1
    return at


def _joins(before: str, character: str) -> bool:
    if character.isascii():
        return False
    return (
        _JOINER in {before, character}
        or unicodedata.category(character)[0] == "M"
        or "\udc00" <= character <= "\udfff"
        or "\U0001f3fb" <= character <= "\U0001f3ff"
    )
