"""Has the engine read a prompt before the first ask, so that the ask finds it in the KV cache.

Nobody waits for it: it is the least urgent work but one, and an error costs nothing but the next ask's time.
Two places are worth it: a document that was opened, if it fits the window (where the cursor will stand in a
longer one, nobody knows), and the place where the cursor rests without anything having been asked there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing

import msgspec

from monkeycode_lsp import config
from monkeycode_lsp.domain import Ask, Prompt, Snapshot, Window
from monkeycode_lsp.engines.base import Engine, Model
from monkeycode_lsp.errors import EngineError

logger = logging.getLogger(__name__)

REST_S = 0.3
"""An editor that starts opens many documents, a cursor that travels passes many places; only the last of them is looked at."""

Prepare = Callable[[Ask, Model], Awaitable[tuple[Window, Prompt] | None]]
"""What an ask there would bring: its window and its prompt, to be read only; None: nothing may be read there."""


class ReadAhead:
    """Reads one prompt at a time, the newest."""

    def __init__(self, engine: Engine, settings: config.LookAhead, prepare: Prepare, *, rest_s: float = REST_S) -> None:
        # The mutable state is the task that reads, for which document, and whether only for the cursor that rests there;
        # it changes in the methods below only.
        self._engine = engine
        self._settings = settings
        self._prepare = prepare
        self._rest_s = rest_s
        self._uri = ""
        self._resting = False
        self._task: asyncio.Task[None] | None = None

    def opened(self, snapshot: Snapshot, model: Model) -> None:
        """Read this document instead of another, if all of it fits."""
        self._begin(at_end(snapshot), model, whole=True)
        self._resting = False

    def resting(self, ask: Ask, model: Model) -> None:
        """Read what would be asked at this place."""
        self._begin(ask, model, whole=False)
        self._resting = True

    def moved(self) -> None:
        """The cursor rests no more."""
        if self._resting:
            self.stop()

    def stop(self, uri: str = "") -> None:
        """Read no more, or no more of this document."""
        if self._task is not None and uri in {"", self._uri}:
            self._task.cancel()
            self._task = None

    def _begin(self, ask: Ask, model: Model, *, whole: bool) -> None:
        self.stop()
        if model.takes_background and self._settings.read:
            self._uri = ask.snapshot.uri
            self._task = asyncio.create_task(self._read(ask, model, whole=whole))

    async def _read(self, ask: Ask, model: Model, *, whole: bool) -> None:
        await asyncio.sleep(self._rest_s)
        prepared = await self._prepare(ask, model)
        if prepared is None or (whole and not (prepared[0].whole_prefix and prepared[0].prefix.strip())):
            return
        try:
            async with aclosing(self._engine.stream(prepared[1])) as stream:
                async for _ in stream:
                    pass
        except EngineError as exc:
            logger.debug("reading ahead: %s", exc)


def at_end(snapshot: Snapshot) -> Ask:
    """As if the cursor stood where the document ends."""
    last = len(snapshot.lines) - 1
    return Ask(msgspec.structs.replace(snapshot, line=last, column=len(snapshot.lines[last].rstrip("\r\n"))))
