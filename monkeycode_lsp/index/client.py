"""Definitions of other files of the workspace, for whoever gathers context: `Index` is all that the server knows of the index.

Invariants: nothing here blocks the event loop, and nothing fails: what is not ready, not known or too late is left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from monkeycode_lsp.index import wire
from monkeycode_lsp.index.child import PAUSES_S, WORKER, Child
from monkeycode_lsp.index.finding import Definition, Finder
from monkeycode_lsp.index.store import GoneError
from monkeycode_lsp.symbols.model import Import

T = TypeVar("T")

Warn = Callable[[str], None]
_Job = Callable[[Finder], None]

_PATIENCE_S = 0.05
"""Of an ask.  A question takes a millisecond; the first one waits for the database to be opened."""
_CLOSING_S = 2.5
_MOST_JOBS = 64
_REST_S = 5.0
"""After trouble with the database."""
_NAME_BYTES = 12
_QUIET = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_CANTOPEN})
"""Of no interest: it works the next time."""


class Index:
    """Of one workspace folder.  All calls come from the event loop."""

    # The mutable state is what the process said last (`_state`, `_warned`, set on its thread), the jobs of the thread that reads, and until
    # when that rests (`_rest_until`, set there).

    def __init__(
        self,
        folder: Path,
        store: Path,
        *,
        ignore_files: Sequence[str],
        secret_files: Sequence[str] = (),
        warn: Warn,
        heard: Callable[[wire.State], None] | None = None,
        command: Sequence[str] = WORKER,
        patience_s: float = _PATIENCE_S,
        pauses_s: Sequence[float] = PAUSES_S,
        rest_s: float = _REST_S,
        pace: wire.Pace = wire.Pace(),  # noqa: B008 - frozen
        limits: wire.Limits = wire.Limits(),  # noqa: B008 - frozen
    ) -> None:
        """`store`: the folder with the databases of all workspaces.  `warn` and `heard` (each state) are called on threads of ours."""
        self._folder = folder
        self._database = store / f"{folder_name(folder)}.db"
        self._ignore_files = tuple(ignore_files)
        self._secret_files = tuple(secret_files)
        self._warn = warn
        self._told = heard
        self._patience_s = patience_s
        self._pace = pace
        self._limits = limits
        self._rest_s = rest_s
        self._tops: tuple[Path, ...] = (folder,)
        self._state = wire.State("indexing")
        self._warned: set[str] = set()
        self._child = Child(self._begin, self._hear, command=command, pauses_s=pauses_s)
        self._jobs: queue.Queue[_Job | None] = queue.Queue(_MOST_JOBS)
        self._reader = threading.Thread(target=self._read, name="index reader", daemon=True)
        self._rest_until = 0.0
        self._is_on = False

    def start(self) -> None:
        """Begin to fill the database and to read it; returns at once."""
        self._is_on = True
        self._child.start()
        self._reader.start()

    def status(self) -> wire.State:
        """How far it is."""
        return self._state

    @property
    def pid(self) -> int | None:
        """Of the process."""
        return self._child.pid

    async def definitions(
        self, names: Sequence[str], language: str, imported: Sequence[Import] = (), *, path: str = ""
    ) -> list[Definition]:
        """Of `names`, the most important first, in files of languages that `language` calls; the best first.

        `imported`: what the document imports; `path`: its own, relative to the folder and `/` separated, none of whose definitions are given.
        """
        return await self._ask(lambda finder: finder.definitions(names, language, imported, path), [])

    def changed(self, paths: Iterable[Path]) -> None:
        """Files or folders (whole paths) were saved, made, moved or deleted; those outside the folder are of no interest."""
        if self._is_on and (inside := tuple(filter(None, map(self._relative, paths)))):
            self._child.say(wire.Changed(inside))

    async def aclose(self) -> None:
        """End the process and the reading."""
        if not self._is_on:
            return
        self._is_on = False
        loop = asyncio.get_running_loop()
        gone: asyncio.Future[None] = loop.create_future()
        self._child.end(lambda: _tell(loop, gone, None))
        with contextlib.suppress(queue.Full):
            self._jobs.put_nowait(None)
        await asyncio.wait({gone}, timeout=_CLOSING_S)

    async def _ask(self, question: Callable[[Finder], T], nothing: T) -> T:
        if not self._is_on or time.monotonic() < self._rest_until:
            return nothing
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def look(finder: Finder) -> None:
            found = nothing
            try:
                found = question(finder) if not answer.done() else nothing
            finally:
                _tell(loop, answer, found)

        try:
            self._jobs.put_nowait(look)
        except queue.Full:  # it hangs
            return nothing
        await asyncio.wait({answer}, timeout=self._patience_s)
        if answer.done():
            return answer.result()
        answer.cancel()
        return nothing

    def _begin(self) -> wire.Begin:
        """On the process's thread: a folder's real name may have to be waited for."""
        real = Path(os.path.realpath(self._folder))
        self._tops = (self._folder, real)
        return wire.Begin(os.fsencode(real), os.fsencode(self._database), self._ignore_files, self._secret_files, self._pace, self._limits)

    def _hear(self, message: wire.FromWorker) -> None:
        """On the process's thread."""
        if isinstance(message, wire.Notice):
            if message.text not in self._warned:
                self._warned.add(message.text)
                self._warn(message.text)
            return
        self._state = message
        if self._told is not None:
            self._told(message)

    def _relative(self, path: Path) -> str:
        for top in self._tops:
            with contextlib.suppress(ValueError):
                inside = path.relative_to(top).as_posix()
                inside.encode()  # bytes that are no text: a file of that name is not kept either
                return inside if inside != "." else ""
        return ""

    def _read(self) -> None:
        """The thread that reads."""
        finder = Finder(self._database)
        while (job := self._jobs.get()) is not None:
            try:
                job(finder)
            except sqlite3.Error as exc:
                self._mend(finder, exc)
            except GoneError:
                self._child.say(wire.Rebuild())
        finder.close()

    def _mend(self, finder: Finder, error: sqlite3.Error) -> None:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        finder.close()
        if code not in _QUIET:
            self._rest_until = time.monotonic() + self._rest_s
            self._child.say(wire.Rebuild())


def folder_name(folder: Path) -> str:
    """The same for each way in which a workspace is opened, and no word of where it lies."""
    return hashlib.blake2b(os.fsencode(os.path.abspath(folder)), digest_size=_NAME_BYTES).hexdigest()  # noqa: PTH100 - of a folder that may not answer


def _tell(loop: asyncio.AbstractEventLoop, future: asyncio.Future[T], result: T) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(_finish, future, result)


def _finish(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)
