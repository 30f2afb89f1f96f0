"""The load of a model by a server that begins it when it is asked, and gives it up when the one who asked has gone.

Asks come and go with the keys, and none waits as long as a big model takes: it would be begun over and over and never
be done.  So one request asks for nothing but the model, and stays until that is there.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from monkeycode_lsp.errors import EngineError

LONGEST_S = 300.0
"""Ollama itself gives up a load that stands still so long."""


class Loading:
    """At most one load at a time.

    The mutable state is the request that waits for it; it changes in `begin` and `aclose` only.
    """

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    @property
    def is_going_on(self) -> bool:
        """Whether the server has not yet said that it is done."""
        return self._task is not None and not self._task.done()

    def begin(self, load: Callable[[], Awaitable[object]]) -> None:
        """Ask for the model, unless that has been done; a server that has it answers at once."""
        if not self.is_going_on:
            self._task = asyncio.create_task(_wait(load))

    async def aclose(self) -> None:
        """Leave it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})


async def _wait(load: Callable[[], Awaitable[object]]) -> None:
    with contextlib.suppress(EngineError, TimeoutError):  # the asks will say what is wrong
        async with asyncio.timeout(LONGEST_S):
            await load()
