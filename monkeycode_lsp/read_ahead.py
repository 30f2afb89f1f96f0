"""Has the engine read a prompt before the first ask, so that the ask finds it in the KV cache.

Nobody waits for it: it is the least urgent work but one, and an error costs nothing but the next ask's time.
Two places are worth it: a document that was opened, if it fits the window (where the cursor will stand in a
longer one, nobody knows), and the place where the cursor rests without anything having been asked there.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing

import msgspec

from monkeycode_lsp import config, prompt
from monkeycode_lsp.context import healing
from monkeycode_lsp.context import window as windows
from monkeycode_lsp.domain import Priority, Prompt, Snapshot, Window
from monkeycode_lsp.engines.base import Engine, Model
from monkeycode_lsp.errors import EngineError

logger = logging.getLogger(__name__)

REST_S = 0.3
"""An editor that starts opens many documents, a cursor that travels passes many places; only the last of them is looked at."""


class ReadAhead:
    """Reads one prompt at a time, the newest."""

    def __init__(self, engine: Engine, settings: config.Config, *, rest_s: float = REST_S) -> None:
        # The mutable state is the task that reads, for which document, and whether only for the cursor that rests there;
        # it changes in the methods below only.
        self._engine = engine
        self._settings = settings
        self._rest_s = rest_s
        self._uri = ""
        self._resting = False
        self._task: asyncio.Task[None] | None = None

    def opened(self, snapshot: Snapshot, model: Model, *, scale: float) -> None:
        """Read this document instead of another; `scale` is the window's."""
        self._begin(snapshot.uri, whole(snapshot, self._settings, scale=scale), model)
        self._resting = False

    def resting(self, uri: str, window: Window, model: Model) -> None:
        """Read what would be asked at this place."""
        self._begin(uri, window, model)
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

    def _begin(self, uri: str, window: Window | None, model: Model) -> None:
        self.stop()
        if window is None or not model.takes_background or not self._settings.look_ahead.read:
            return
        family = prompt.by_setting(self._settings.template, model.family)
        if model.heals:  # the ask that comes will leave out the same
            window = msgspec.structs.replace(window, prefix=healing.split(window.prefix)[0])
        rendered = prompt.render(window, (), family, max_tokens=0, priority=Priority.WARM_UP, session=uri)
        self._uri = uri
        self._task = asyncio.create_task(self._read(rendered))

    async def _read(self, rendered: Prompt) -> None:
        await asyncio.sleep(self._rest_s)
        try:
            async with aclosing(self._engine.stream(rendered)) as stream:
                async for _ in stream:
                    pass
        except EngineError as exc:
            logger.debug("reading ahead: %s", exc)


def whole(snapshot: Snapshot, settings: config.Config, *, scale: float) -> Window | None:
    """The window that holds all of a document; None where it does not fit, or says nothing."""
    last = len(snapshot.lines) - 1
    at_end = msgspec.structs.replace(snapshot, line=last, column=len(snapshot.lines[last].rstrip("\r\n")))
    window = windows.around(at_end, settings.context, scale=scale)
    return window if window.whole_prefix and window.prefix.strip() else None
