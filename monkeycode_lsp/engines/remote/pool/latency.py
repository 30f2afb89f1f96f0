"""How long one server takes to say something: what it nearly never exceeds, and its pace of late."""

from __future__ import annotations

from collections import deque

N_KEPT = 100
N_ENOUGH = 20
"""With fewer nothing is known."""
_SHARE = 0.95
_N_RECENT = 5
_N_SURE = 3
_LONG_S = 1.0
"""A few answers tell nothing of a server, unless they take so long: it may have read a prompt that is new to it."""
_MUCH = 3.0
_MUCH_S = 0.1
"""So much slower than another is worth a prompt that is read anew there; what is less, nobody sees."""
_EVERY = 8
"""After so many more times the figure is worked out anew: sorting at every ask would cost more than it tells."""


def is_much_slower(seconds: float, than_s: float) -> bool:
    return seconds >= max(_MUCH * than_s, than_s + _MUCH_S)


class Latencies:
    """Times to the first piece of an answer."""

    # The mutable state is the times, the last few of them and their pace, and the figure that was worked out last; it changes
    # in `add`, `silent` and `usual_s` only.

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=N_KEPT)
        self._n_new = _EVERY
        self._usual_s: float | None = None
        self._recent: deque[float] = deque(maxlen=_N_RECENT)
        self.pace_s: float | None = None
        """What it takes of late; None: not known.  One slow answer does not raise it, and one quick answer lowers it."""

    def add(self, seconds: float) -> None:
        self._times.append(seconds)
        self._n_new += 1
        self._add_recent(seconds)

    @property
    def is_certain(self) -> bool:
        """Whether its pace can be held against it."""
        return self.pace_s is not None and (len(self._recent) >= _N_SURE or self.pace_s >= _LONG_S)

    def silent(self, seconds: float) -> None:
        """It was given up after so long: it would have taken at least that."""
        usual_s = self.usual_s()
        if usual_s is not None and seconds > usual_s:
            self.add(seconds)
        elif seconds > max(_MUCH_S, self.pace_s or 0.0):
            self._add_recent(seconds)

    def usual_s(self) -> float | None:
        """What nearly all answers (95 of 100) do not exceed; None: too few are known."""
        if len(self._times) < N_ENOUGH:
            return None
        if self._usual_s is None or self._n_new >= _EVERY:
            self._n_new = 0
            self._usual_s = sorted(self._times)[int(_SHARE * (len(self._times) - 1))]
        return self._usual_s

    def _add_recent(self, seconds: float) -> None:
        self._recent.append(seconds)
        self.pace_s = min(seconds, sorted(self._recent)[(len(self._recent) - 1) // 2])
