"""Whether a difference could be chance (pure): intervals and the paired test, exact."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import msgspec

_Z = 1.959963984540054
"""Of the normal distribution, for 95 %."""
_DRAWS = 10_000
_SEED = 1


class Interval(msgspec.Struct, frozen=True):
    """In which a value lies with a confidence of 95 %."""

    low: float
    high: float


def wilson(n_good: int, n: int) -> Interval:
    """Of a share."""
    if not n:
        return Interval(0.0, 1.0)
    share, spread = n_good / n, _Z * _Z / n
    middle = (share + spread / 2) / (1 + spread)
    half = _Z / (1 + spread) * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    return Interval(max(0.0, middle - half), min(1.0, middle + half))


def mcnemar(n_won: int, n_lost: int) -> float:
    """The chance of a split at least so uneven, if neither way were better: two-sided, exact."""
    n = n_won + n_lost
    tail = sum(math.comb(n, k) for k in range(min(n_won, n_lost) + 1))
    return min(1.0, 2 * tail / (1 << n))


def bootstrap(differences: Sequence[float]) -> Interval:
    """Of the mean of paired differences; the same each time."""
    if not differences:
        return Interval(0.0, 0.0)
    chance = random.Random(_SEED)  # noqa: S311 - no secret
    n = len(differences)
    means = sorted(sum(chance.choices(differences, k=n)) / n for _ in range(_DRAWS))
    return Interval(means[int(0.025 * _DRAWS)], means[int(0.975 * _DRAWS) - 1])
