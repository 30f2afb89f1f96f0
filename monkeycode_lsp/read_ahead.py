"""Has the engine read a document when it is opened, so that the first ask finds it in the KV cache.

Nobody waits for it: it is the least urgent work but one, and an error costs nothing but the first ask's time.
Only a document that fits the window is read: where the cursor will stand in a longer one, nobody knows.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing

import msgspec

from monkeycode_lsp import config, prompt
from monkeycode_lsp.context import window as windows
from monkeycode_lsp.domain import Priority, Prompt, Snapshot
from monkeycode_lsp.engines.base import Engine, Model
from monkeycode_lsp.errors import EngineError

logger = logging.getLogger(__name__)

REST_S = 0.3
"""An editor that starts opens many documents; only the last of them is looked at."""


class ReadAhead:
    """Reads one document at a time, the newest."""

    def __init__(self, engine: Engine, settings: config.Config, *, rest_s: float = REST_S) -> None:
        # The mutable state is the task that reads, and what it reads; it changes in `begin` and `stop` only.
        self._engine = engine
        self._settings = settings
        self._rest_s = rest_s
        self._uri = ""
        self._task: asyncio.Task[None] | None = None

    def begin(self, snapshot: Snapshot, model: Model, *, scale: float) -> None:
        """Read this document instead of another; `scale` is the window's."""
        self.stop()
        rendered = whole(snapshot, model, self._settings, scale=scale) if model.reads_ahead else None
        if rendered is not None:
            self._uri = snapshot.uri
            self._task = asyncio.create_task(self._read(rendered))

    def stop(self, uri: str = "") -> None:
        """Read no more, or no more of this document."""
        if self._task is not None and uri in {"", self._uri}:
            self._task.cancel()
            self._task = None

    async def _read(self, rendered: Prompt) -> None:
        await asyncio.sleep(self._rest_s)
        try:
            async with aclosing(self._engine.stream(rendered)) as stream:
                async for _ in stream:
                    pass
        except EngineError as exc:
            logger.debug("reading ahead: %s", exc)


def whole(snapshot: Snapshot, model: Model, settings: config.Config, *, scale: float) -> Prompt | None:
    """The prompt that holds all of a document; None where it does not fit, or says nothing."""
    last = len(snapshot.lines) - 1
    at_end = msgspec.structs.replace(snapshot, line=last, column=len(snapshot.lines[last].rstrip("\r\n")))
    window = windows.around(at_end, settings.context, scale=scale)
    if not window.whole_prefix or not window.prefix.strip():
        return None
    family = prompt.by_setting(settings.template, model.family)
    return prompt.render(window, (), family, max_tokens=0, priority=Priority.WARM_UP, session=snapshot.uri)
