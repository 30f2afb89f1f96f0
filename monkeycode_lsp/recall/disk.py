"""The tier on this machine's disk, shared by all windows of the user.

Invariant: the event loop never touches the disk.  One thread of our own does, and the process ends without it when it hangs.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from monkeycode_lsp import folders
from monkeycode_lsp.domain import Origin
from monkeycode_lsp.errors import ConfigError
from monkeycode_lsp.recall.record import Record
from monkeycode_lsp.recall.tier import Warn

if TYPE_CHECKING:
    from monkeycode_lsp.recall.disk_keeper import Keeper
    from monkeycode_lsp.recall.disk_store import Connect

_PATIENCE_S = 0.02
_OPENING_PATIENCE_S = 0.3
"""The first answer waits for imports and for the database to be opened: 40 ms on an idle machine."""
_CLOSING_PATIENCE_S = 0.8
_MOST_JOBS = 64
"""More than that is not worth waiting for."""

T = TypeVar("T")

_Job = Callable[["Keeper"], None]


def folder(directory: str) -> Path:
    """The one that the setting `cache.directory` means.  Raises `ConfigError`."""
    if not directory:
        return folders.cache() / "suggestions"
    try:
        return Path(directory).expanduser()
    except RuntimeError as exc:
        raise ConfigError("`cache.directory` begins with a home folder that does not exist.", remedy="Write the whole path.") from exc


class Disk:
    """Records in a folder, for `ttl_s` seconds, in about `most_bytes` bytes."""

    origin = Origin.DISK

    # The mutable state is the thread with its queue, and what it says of itself (`_keeper`, `_busy_since`);
    # it changes in `open`, `aclose` and `_work` only.

    def __init__(
        self, folder: Path, *, ttl_s: float, most_bytes: int, warn: Warn, connect: Connect | None = None, rest_s: float = 60.0
    ) -> None:
        self._folder = folder
        self._ttl_s = ttl_s
        self._most_bytes = most_bytes
        self._warn = warn
        self._connect = connect
        self._rest_s = rest_s
        self._jobs: queue.Queue[_Job | None] = queue.Queue(_MOST_JOBS)
        self._thread: threading.Thread | None = None
        self._off = False
        """Closed, or this Python cannot do it."""
        self._farewell: Callable[[], object] = int
        """Called by the thread when it ends."""
        self._keeper: Keeper | None = None
        """Set once the first attempt to open has ended, however it ended."""
        self._busy_since: float | None = None
        """When the thread took the job that it is at."""

    @property
    def patience_s(self) -> float:
        """More for the first answer; nothing while the thread hangs, or rests after a trouble."""
        if self._off:
            return 0.0
        patience_s = _OPENING_PATIENCE_S if self._keeper is None else _PATIENCE_S
        busy_since = self._busy_since
        hangs = busy_since is not None and time.monotonic() - busy_since >= patience_s
        return 0.0 if hangs or (self._keeper is not None and self._keeper.resting) else patience_s

    def open(self) -> None:
        """Begin to open the database; returns at once.  Whoever does not call it waits longer for the first answer."""
        if self._thread is None and not self._off:
            self._busy_since = time.monotonic()
            # Not an executor's: the interpreter would wait for that one at its end.
            self._thread = threading.Thread(target=self._work, name="disk", daemon=True)
            self._thread.start()

    async def get(self, key: bytes) -> Record | None:
        patience_s = self.patience_s
        if not patience_s:
            return None
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Record | None] = loop.create_future()

        def look(keeper: Keeper) -> None:
            found = keeper.get(key)
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(_finish, answer, found)

        if not self._take(look):
            return None
        await asyncio.wait({answer}, timeout=patience_s)
        return answer.result() if answer.done() else None

    def put(self, key: bytes, record: Record) -> None:
        self._take(lambda keeper: keeper.put(key, record))

    async def aclose(self) -> None:
        if self._off or self._thread is None:
            self._off = True
            return
        self._off = True
        loop = asyncio.get_running_loop()
        left: asyncio.Future[None] = loop.create_future()
        self._farewell = lambda: loop.call_soon_threadsafe(_finish, left, None)
        while True:
            try:
                self._jobs.put_nowait(None)
                break
            except queue.Full:  # it hangs, so nothing of that would be done in time
                with contextlib.suppress(queue.Empty):
                    self._jobs.get_nowait()
        await asyncio.wait({left}, timeout=_CLOSING_PATIENCE_S)

    def _take(self, job: _Job) -> bool:
        """Whether it will be done."""
        self.open()
        if self._off:
            return False
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            return False
        return True

    def _work(self) -> None:
        """The thread."""
        try:
            from monkeycode_lsp.recall import disk_keeper, disk_store  # noqa: PLC0415 - a server starts without SQLite and the cache library
        except ImportError as exc:  # a Python that was built without SQLite
            self._say(f"This Python cannot keep suggestions on disk ({exc}), so they are kept in memory only.  Install it with SQLite.")
            self._off = True
            return
        kept = disk_keeper.Keeper(
            self._folder,
            ttl_s=self._ttl_s,
            most_bytes=self._most_bytes,
            warn=self._say,
            connect=self._connect or disk_store.connect,
            rest_s=self._rest_s,
        )
        kept.open()
        self._keeper = kept
        self._busy_since = None
        while (job := self._jobs.get()) is not None:
            self._busy_since = time.monotonic()
            job(kept)
            self._busy_since = None
        kept.close()
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._farewell()

    def _say(self, text: str) -> None:
        if not self._off:
            self._warn(text)


def _finish(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)
