"""An event loop on a clock of its own: where nothing is ready it goes on to the next timer instead of sleeping.

Sockets and threads are still looked at, but time does not wait for them while a timer is set.
"""

from __future__ import annotations

import asyncio
import math
import selectors


class _Clock(selectors.DefaultSelector):
    """Turns the time that the loop would sleep into time that has passed."""

    # The mutable state is the time; it changes in `select` only.

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:  # no timer at all: only a socket or a thread can wake us
            return super().select(None)
        ready = super().select(0)
        if not ready:
            # Far from 0 the sum may fall short of the timer by a rounding, and the loop takes a timer for due only
            # when its time is over; two of the smallest steps further it is.
            self.now = math.nextafter(math.nextafter(self.now + timeout, math.inf), math.inf)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """For `asyncio.Runner(loop_factory=VirtualLoop)`.  Its time begins at 0."""

    def __init__(self) -> None:
        self._clock = _Clock()
        super().__init__(self._clock)

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Wait for the threads, however long it takes: a limit in this loop's time would be over at once."""
        del timeout
        await super().shutdown_default_executor()

    def time(self) -> float:
        """Seconds of the loop's own clock."""
        return self._clock.now
