"""How far a long run is, in words, now and then."""

from __future__ import annotations

import time
from collections.abc import Callable

_EVERY_S = 15.0
_MINUTE_S = 60.0


class Progress:
    """Says a line when a part begins and every few seconds.

    The mutable state is the part, when it began and when something was said last; it changes in `__call__` only.
    """

    def __init__(self, say: Callable[[str], None], *, clock: Callable[[], float] = time.monotonic, every_s: float = _EVERY_S) -> None:
        self._say = say
        self._clock = clock
        self._every_s = every_s
        self._name = ""
        self._began = self._last = 0.0

    def __call__(self, name: str, done: int, total: int) -> None:
        now = self._clock()
        if name != self._name:
            self._name, self._began, self._last = name, now, now
            self._say(f"{name}: {total} to do")
        elif now - self._last >= self._every_s:
            self._last = now
            left_s = (now - self._began) / done * (total - done) if done else 0.0
            self._say(f"{name}: {done} of {total}, {_time(left_s)} left")


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 2 * _MINUTE_S else f"{seconds / _MINUTE_S:.0f} min"
