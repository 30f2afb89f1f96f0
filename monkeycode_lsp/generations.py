"""The running generations of every document: begun, adopted, and stopped when nobody can want them any more.

They lie in recall's table beside the finished suggestions.  At most one runs for a document, and no
generation runs without an ask that wants it, or wanted it last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from monkeycode_lsp.domain import Scope, Window
from monkeycode_lsp.engines.base import Engine
from monkeycode_lsp.generation import Generation, Request
from monkeycode_lsp.recall.agreement import Rest
from monkeycode_lsp.recall.table import Made, Table

GRACE_S = 0.1
"""A generation whose ask was cancelled lives on so long: editors cancel just before they ask again."""
MOST_RUNNING = 32
_TAIL = 400
"""Characters that tell a place well enough."""


class Generations:
    """Those of one pipeline."""

    # The mutable state is what runs in the table and the tasks of those that are being stopped.

    def __init__(self, engine: Engine, table: Table, finished: Callable[[str, Generation], None]) -> None:
        self._engine = engine
        self._table = table
        self._finished = finished
        self._stopping: set[asyncio.Task[None]] = set()

    def start(self, uri: str, request: Request, scope: Scope, *, background: bool = False) -> Generation:
        """Begin one; another one of the document ends."""
        self.leave(uri)
        if len(running := self._table.all_running()) >= MOST_RUNNING:
            self._stop(running[0])
        generation = Generation(self._engine, request, scope, background=background)
        self._table.put(uri, generation)
        generation.when_done(lambda: self._done(uri, generation))
        return generation

    def adopt(self, uri: str, scope: Scope, window: Window) -> tuple[Generation, Rest] | None:
        """The running one that agrees with the text; those that do not are stopped."""
        self.leave_astray(uri, scope, window)
        found = self._table.running(uri, scope, window)
        if found is None or not isinstance(found.made, Generation):
            return None
        found.made.background = False
        return found.made, found.rest

    def leave_astray(self, uri: str, scope: Scope, window: Window, *, coming: str = "") -> None:
        """Stop those of the document that no longer agree with its text, at the backend too.

        `coming`: what is shown at the window; what was begun as if it had been taken already stays.
        """
        for made in self._table.astray(uri, scope, window):
            is_ahead = isinstance(made, Generation) and made.background and bool(coming)
            if is_ahead and made.window.suffix == window.suffix and made.window.prefix.endswith(window.prefix[-_TAIL:] + coming):
                continue
            self._table.discard(uri, made)
            self._stop(made)

    def leave(self, uri: str = "") -> None:
        """Stop what runs for one document, or for all."""
        for made in self._table.all_running(uri):
            self._stop(made)

    def make_way(self) -> None:
        """Somebody waits for the engine: stop what was begun ahead of time."""
        for made in self._table.all_running():
            if isinstance(made, Generation) and made.background:
                self._stop(made)

    def expire(self, generation: Generation, after_s: float) -> None:
        """Stop it then, unless an ask has adopted it."""

        def check() -> None:
            if generation.background:
                self._stop(generation)

        asyncio.get_running_loop().call_later(after_s, check)

    def unwanted_soon(self, generation: Generation) -> None:
        """Its ask was cancelled: unless another one comes, it ends."""
        if generation.n_waiting:
            return
        n_waited = generation.n_waited

        def check() -> None:
            if generation.n_waited == n_waited:
                self._stop(generation)

        asyncio.get_running_loop().call_later(GRACE_S, check)

    async def aclose(self) -> None:
        """Stop all, and wait until the engine has let go."""
        self.leave()
        if self._stopping:
            await asyncio.wait(self._stopping, timeout=2.0)

    def _stop(self, made: Made) -> None:
        if isinstance(made, Generation) and made.running:
            task = made.stop()
            self._stopping.add(task)
            task.add_done_callback(self._stopping.discard)

    def _done(self, uri: str, generation: Generation) -> None:
        self._table.discard(uri, generation)
        self._finished(uri, generation)
