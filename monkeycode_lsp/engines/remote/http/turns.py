"""Fairness to the rest of the process: whoever has much to read at once stops for the others in between.

Reading what is there already never waits, so without this a server that sends much would keep timeouts,
cancels and every other request waiting.
"""

from __future__ import annotations

import asyncio
from time import monotonic

_TURN_S = 0.005


class Turn:
    """Of one reader.  The mutable state is when its turn began; it changes in `end`."""

    def __init__(self) -> None:
        self._began = monotonic()

    async def end(self) -> None:
        """Let the others have theirs, if this one took long."""
        if monotonic() - self._began > _TURN_S:
            await asyncio.sleep(0)
            self._began = monotonic()
