"""How long the event loop was kept from everything else."""

from __future__ import annotations

import asyncio
import gc
from time import perf_counter
from typing import Self

_BEAT_S = 0.005


class Heartbeat:
    """`longest_s`: the longest time between two beats while this was open."""

    def __init__(self) -> None:
        self.longest_s = 0.0

    async def __aenter__(self) -> Self:
        gc.collect()  # not now
        self._task = asyncio.create_task(self._beat())
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(_BEAT_S)  # a pause that goes on is noticed
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _beat(self) -> None:
        while True:
            start = perf_counter()
            await asyncio.sleep(_BEAT_S)
            self.longest_s = max(self.longest_s, perf_counter() - start)
