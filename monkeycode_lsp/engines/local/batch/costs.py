"""What one decode costs by the number of its rows, learned while running.  Pure; the caller has the clock.

The curve has steps: two rows can cost more than two decodes of one row, and eight as much as five.  So nothing
is assumed of its form between the row counts that were seen, but that it does not jump far.
"""

from __future__ import annotations

import math
from bisect import bisect_left

_EXACT = 16
"""Row counts that are learned one by one: up to here the steps of the curve decide what is worth doing."""
_FALL = 0.3
_RISE = 0.1
"""A belief follows a cheaper decode faster than a dearer one: what disturbs a decode only ever adds to it."""
_OUTLIER = 2.0
"""A decode that took longer than so many times the belief counts as so many times."""
_FRESH = 512
"""For so many decodes a belief is taken as it is."""
_FADE = 0.0001
"""Then it gets cheaper by this share with each decode that passes without a new look …"""
_FADED = 0.3
"""… down to this share less."""


class Costs:
    """Milliseconds of a decode.

    Decodes differ by tens of percent with the length of the contexts and with what else the machine does.
    A belief is therefore a low expectile of what was seen, the same for every row count: comparisons hold, though
    each figure is a little flattering.  What was found dear is not tried any more, so nothing would correct a wrong
    belief; that is why one that was not seen for long fades, until it looks good enough for another look.
    Such a look costs at most `_FADED` of one decode.
    """

    def __init__(self) -> None:
        # The mutable state is the beliefs by row count, when (in decodes) each was last seen and how often; it
        # changes in `observe` only.  It is bounded: row counts above `_EXACT` share two places per power of two.
        self._ms: dict[int, float] = {}
        self._seen: dict[int, int] = {}
        self._times: dict[int, int] = {}
        self._places: list[int] = []
        self._now = 0

    def observe(self, n_rows: int, ms: float) -> None:
        """Learn from one decode."""
        if n_rows < 1 or not 0 < ms < math.inf:
            return
        self._now += 1
        place = _place(n_rows)
        ms *= _shape(place) / _shape(n_rows)
        belief = self._ms.get(place)
        if belief is None:
            self._places.insert(bisect_left(self._places, place), place)
            self._ms[place] = ms
        elif ms < belief:
            # The first decodes of all touch cold memory: the fewer were seen, the more a better one counts.
            self._ms[place] += (ms - belief) * max(_FALL, 1 / (self._times[place] + 1))
        else:
            self._ms[place] += (min(ms, belief * _OUTLIER) - belief) * _RISE
        self._times[place] = self._times.get(place, 0) + 1
        self._seen[place] = self._now

    def of(self, n_rows: int) -> float:
        """What a decode of so many rows takes: between neighbours on a line, beyond the ends in a usual proportion."""
        n_rows = max(n_rows, 1)
        if not self._places:
            return _shape(n_rows)
        n = bisect_left(self._places, n_rows)
        if n == len(self._places) or n == 0 or self._places[n] == n_rows:
            place = self._places[min(n, len(self._places) - 1)]
            return self._belief(place) * (_shape(n_rows) / _shape(place))
        low, high = self._places[n - 1], self._places[n]
        below, above = self._belief(low), self._belief(high)
        return below + (above - below) * (n_rows - low) / (high - low)

    def pays_together(self, n: int) -> bool:
        """Whether one decode with a row of each of `n` streams is cheaper than a decode for each."""
        return n <= 1 or self.of(n) < n * self.of(1)

    def _belief(self, place: int) -> float:
        age = self._now - self._seen[place]
        if age <= _FRESH:
            return self._ms[place]
        return self._ms[place] * (1 - min(_FADED, (age - _FRESH) * _FADE))


def _place(n_rows: int) -> int:
    """Where a row count is learned: 1 … 16, 24, 32, 48, 64, 96, 128 and so on."""
    if n_rows <= _EXACT:
        return n_rows
    power = 1 << (n_rows - 1).bit_length()
    middle = power * 3 // 4
    return middle if n_rows <= middle else power


def _shape(n_rows: int) -> float:
    """The usual proportion, for what is not known: each row adds a tenth of what any decode costs."""
    return 1.0 + 0.1 * n_rows
