"""A circuit breaker: what fails again and again is left alone for a while (pure; the caller tells the time).

While it is open nothing passes, except one probe when the rest is over: a good probe closes it, a bad one
makes the rest longer.
"""

from __future__ import annotations

FAILURE = 3
SLOW = 1
"""An answer that came too late is a third of a failure: a busy machine makes some of its own."""
ENOUGH = 9
"""Strikes in a row that open the breaker."""
FIRST_S = 1.0
LONGEST_S = 60.0


class Breaker:
    """Closed at first."""

    # The mutable state is the strikes in a row, the rest and its end, and whether a probe is out; it changes
    # in `passes`, `good` and `bad` only.

    def __init__(self, *, enough: int = ENOUGH, first_s: float = FIRST_S, longest_s: float = LONGEST_S) -> None:
        self._enough = enough
        self._first_s = first_s
        self._longest_s = longest_s
        self._n_strikes = 0
        self._rest_s = 0.0
        self._until_s: float | None = None
        self._closed_at_s: float | None = None
        self._probing = False

    @property
    def is_open(self) -> bool:
        """Whether it is out of order, a probe on its way or not."""
        return self._until_s is not None

    def passes(self, now_s: float) -> bool:
        """Whether a question may be asked now.  While open, the one that may is the probe: its verdict must follow."""
        if self._until_s is None:
            return True
        if self._probing or now_s < self._until_s:
            return False
        self._probing = True
        return True

    def good(self, now_s: float) -> bool:
        """Note a good answer; True if this closed the breaker."""
        self._n_strikes = 0
        if not self._probing:
            return False  # closed anyway, or a late word from before it opened
        self._until_s = None
        self._closed_at_s = now_s
        self._probing = False
        return True

    def bad(self, now_s: float, strikes: int = FAILURE) -> bool:
        """Note a failure or a slow answer; True if this opened the breaker."""
        if self._until_s is not None:
            if self._probing:
                self._rest(now_s)
            return False
        self._n_strikes += strikes
        if self._n_strikes < self._enough:
            return False
        if self._closed_at_s is None or now_s - self._closed_at_s > self._longest_s:
            self._rest_s = 0.0  # it was in order for long; else the rest goes on growing
        self._rest(now_s)
        return True

    def _rest(self, now_s: float) -> None:
        self._rest_s = min(self._longest_s, max(self._first_s, 2 * self._rest_s))
        self._until_s = now_s + self._rest_s
        self._n_strikes = 0
        self._probing = False
