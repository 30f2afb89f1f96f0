"""A stopwatch for the stages of one ask."""

from __future__ import annotations

from monkeycode_lsp import clock


class Stages:
    """Milliseconds of each stage, in order.  A stage ends where the next begins."""

    def __init__(self) -> None:
        self._start = self._last = clock.now()
        self.ms: dict[str, float] = {}

    def end(self, stage: str) -> None:
        """Close the stage that has been running."""
        now = clock.now()
        self.ms[stage] = self.ms.get(stage, 0.0) + (now - self._last) * 1e3
        self._last = now

    @property
    def total_ms(self) -> float:
        return (clock.now() - self._start) * 1e3
