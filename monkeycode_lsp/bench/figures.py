"""Percentiles and ratios, for tables."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import msgspec


class Spread(msgspec.Struct, frozen=True):
    """Of a list of milliseconds."""

    n: int
    p50: float
    p90: float
    p99: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        ordered = sorted(values)
        return cls(len(ordered), *(percentile(ordered, share) for share in (0.50, 0.90, 0.99)))


def percentile(ordered: Sequence[float], share: float) -> float:
    """Nearest rank, of ascending values."""
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]


def paired_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the ratios of values that were measured side by side: a machine that is busy for a while spoils few of them."""
    return statistics.median(our / their for our, their in zip(ours, theirs, strict=True))
