"""A small sample of real holes, to compare models with: the rest of a line in the standard library of this Python.

Deterministic: the same interpreter gives the same sample.  The text is surely in every model's training
data, so that figures compare models with each other and say nothing more.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import msgspec

PREFIX_CHARACTERS = 1_200
SUFFIX_CHARACTERS = 400
_SEED = 20_240_914
_LEAST_HOLE = 4
_LONGEST_HOLE = 120


class Hole(msgspec.Struct, frozen=True):
    """One place with the text that belongs there."""

    prefix: str
    suffix: str
    expected: str


def sample(files: Sequence[Path], n: int) -> list[Hole]:
    """`n` holes; a larger sample begins with the smaller one."""
    chance = random.Random(_SEED)  # noqa: S311 - the same sample on every run
    holes: list[Hole] = []
    while len(holes) < n:
        path = chance.choice(files)
        text = path.read_text(encoding="utf-8", errors="replace")
        hole = cut(text, chance.randrange(PREFIX_CHARACTERS, max(PREFIX_CHARACTERS + 1, len(text) - SUFFIX_CHARACTERS)))
        if hole is not None:
            holes.append(hole)
    return holes


def cut(text: str, at: int) -> Hole | None:
    """What stands from `at` to the end of its line is the hole; None: there is too little or too much."""
    end = text.find("\n", at)
    expected = text[at:end] if end >= 0 else ""
    if not _LEAST_HOLE <= len(expected.strip()) <= _LONGEST_HOLE:
        return None
    return Hole(text[max(0, at - PREFIX_CHARACTERS) : at], text[end : end + SUFFIX_CHARACTERS], expected)
