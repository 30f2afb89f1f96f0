"""How long one server usually takes to say something: the last hundred times."""

from __future__ import annotations

from collections import deque

N_KEPT = 100
N_ENOUGH = 20
"""With fewer nothing is known."""
_SHARE = 0.95
_EVERY = 8
"""After so many more times the figure is worked out anew: sorting at every ask would cost more than it tells."""


class Latencies:
    """Times to the first piece of an answer."""

    # The mutable state is the times and the figure that was worked out last; it changes in `add` and `usual_s` only.

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=N_KEPT)
        self._n_new = _EVERY
        self._usual_s: float | None = None

    def add(self, seconds: float) -> None:
        self._times.append(seconds)
        self._n_new += 1

    def usual_s(self) -> float | None:
        """What nearly all answers (95 of 100) do not exceed; None: too few are known."""
        if len(self._times) < N_ENOUGH:
            return None
        if self._usual_s is None or self._n_new >= _EVERY:
            self._n_new = 0
            self._usual_s = sorted(self._times)[int(_SHARE * (len(self._times) - 1))]
        return self._usual_s
