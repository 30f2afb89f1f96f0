"""Which model answers: the engine gets ready once for all who wait, and goes on getting ready without them."""

from __future__ import annotations

import asyncio

from monkeycode_lsp import clock
from monkeycode_lsp.engines.base import Engine, Model
from monkeycode_lsp.errors import EngineBusyError


class Readiness:
    """Of one engine."""

    # The mutable state is the model that answered last and the task that asks for it; it changes in `wait` only.

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._task: asyncio.Task[Model] | None = None
        self.model: Model | None = None
        """As it was last; None: the engine was never ready."""

    def soon(self) -> None:
        """An ask is likely to need the engine in a moment: what it has to do first (start, connect) can begin."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._engine.ready())
            self._task.add_done_callback(_noted)

    async def wait(self, until: float) -> Model:
        """The model, waiting for it no longer than that."""
        if self._task is None:
            self._task = asyncio.create_task(self._engine.ready())
        task = self._task
        await asyncio.wait({task}, timeout=max(0.0, until - clock.now()))
        if not task.done():
            raise EngineBusyError("The engine is still starting.")
        if self._task is task:
            self._task = None  # asked again each time: an engine that died gets ready again, for one that lives it is cheap
        if task.cancelled():  # by `cancel`, not by our caller
            raise EngineBusyError("The settings changed while the engine was starting.")
        self.model = task.result()
        return self.model

    def cancel(self) -> None:
        """Nobody waits any more."""
        if self._task is not None:
            self._task.cancel()


def _noted(task: asyncio.Task[Model]) -> None:
    """Perhaps nobody waits for it; who needs the engine next asks again, and hears what is wrong."""
    if not task.cancelled():
        task.exception()
