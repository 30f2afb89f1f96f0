"""Percentiles and processes, for tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

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


def resident_mb(pid: int) -> float:
    """Resident memory of a process in MB; 0 where the system does not tell."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1000 for line in status.splitlines() if line.startswith("VmRSS")), 0.0)
