"""How near an answer is to what belongs there (pure)."""

from __future__ import annotations


def is_exact(said: str, expected: str) -> bool:
    """White space at both ends is no matter of taste here."""
    return said.strip() == expected.strip()


def similarity(said: str, expected: str) -> float:
    """1 - edit distance / the longer length, without white space at both ends."""
    first, second = said.strip(), expected.strip()
    longest = max(len(first), len(second))
    return 1 - _distance(first, second) / longest if longest else 1.0


def _distance(first: str, second: str) -> int:
    """Levenshtein's."""
    row = list(range(len(second) + 1))
    for number, character in enumerate(first, start=1):
        above_left, row[0] = row[0], number
        for at, other in enumerate(second, start=1):
            above_left, row[at] = row[at], min(row[at] + 1, row[at - 1] + 1, above_left + (character != other))
    return row[-1]
