"""The process that fills the database of one workspace: `python -P -m monkeycode_lsp.index.worker`.  See `wire` for what it hears and says.

Invariants: it ends as soon as its standard input does, whatever it is doing.  Nothing but messages is written to what was its standard
output.  Everything it does gives way to every other program.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import queue
import signal
import sqlite3
import sys
import threading
import time
from pathlib import Path
from typing import BinaryIO, Literal, NoReturn

import msgspec

from monkeycode_lsp.index import care, store, trouble, wire
from monkeycode_lsp.index.crashes import Note
from monkeycode_lsp.index.indexer import Indexer
from monkeycode_lsp.index.lock import Lock
from monkeycode_lsp.index.store import GoneError, Store
from monkeycode_lsp.index.trouble import Trouble
from monkeycode_lsp.index.watcher import Watcher

_NICE = 19
_AGAIN_S = 1.0
"""Before a file is read again that changed while it was read."""
_TELL_S = 2.0
_TROUBLE_S = 300.0
_LONGEST_WAIT_S = 3_600.0
_MANY_CHANGES = 5_000
"""At once: then some may have been lost."""
_SLOW_WALK = 30.0
"""Where the workspace is walked instead of watched, about one part in so many of the time is spent on it at most."""
_VERSION = "2"
"""Of what is extracted; another one reads every file again."""


def main() -> None:
    """Run it until its server has gone."""
    says = os.fdopen(_claim_stdout(), "wb", buffering=0)
    hears = sys.stdin.buffer
    _settle()
    line = hears.readline()
    if not line:
        return
    begin = msgspec.json.decode(line, type=wire.Begin)
    worker = Worker(begin, says)
    threading.Thread(target=worker.listen, args=(hears,), name="server", daemon=True).start()
    worker.run()


def _claim_stdout() -> int:
    """Keep it for messages: what anything else prints goes to standard error."""
    sys.stdout = sys.stderr
    kept = os.dup(1)
    os.dup2(2, 1)
    return kept


def _settle() -> None:
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):  # Windows: whoever starts us does it
        os.nice(max(0, _NICE - os.nice(0)))
    with contextlib.suppress(OSError, AttributeError):  # Linux only
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


class Worker:
    """What is to be done, and how far it is."""

    # The mutable state is what was heard (`_inbox`, filled by the threads that listen) and not yet done (`_waiting`), what there
    # is of the database, when to walk next, and what was said.  All but the inbox changes on the main thread only.

    def __init__(self, begin: wire.Begin, says: BinaryIO) -> None:
        self._begin = begin
        self._says = says
        self._root = Path(os.fsdecode(begin.folder))
        self._path = Path(os.fsdecode(begin.database))
        self._inbox: queue.SimpleQueue[frozenset[str] | None] = queue.SimpleQueue()
        """Paths that may have changed; None: a reader found the database damaged, or gone."""
        self._waiting: set[str] = set()
        self._watcher = Watcher(self._root, self._inbox.put, most_folders=begin.pace.most_watched)
        self._unwatched = ""
        """Why it is not watched."""
        self._lock: Lock | None = None
        self._note: Note | None = None
        self._store: Store | None = None
        self._at_work = False
        """On what has changed."""
        self._walk_at = 0.0
        self._told: set[Trouble] = set()
        self._anew_at = -_TROUBLE_S
        self._said_at = 0.0

    def listen(self, hears: BinaryIO) -> None:
        """On a thread of its own: hear the server, and end the process when there is none any more."""
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            while line := hears.readline():
                message = msgspec.json.decode(line, type=wire.ToWorker)
                if isinstance(message, wire.Changed):
                    self._inbox.put(frozenset(message.paths))
                elif isinstance(message, wire.Rebuild):
                    self._inbox.put(None)
        if self._note is not None:
            self._note.clear()  # it was not a file that ended us
        os._exit(0)

    def run(self) -> NoReturn:
        """Work until the process ends."""
        while True:
            try:
                self._keep(self._opened())
            except (sqlite3.Error, OSError) as exc:
                self._mend(exc)
            except GoneError:
                self._let_go()

    def _opened(self) -> Indexer:
        store.own(self._path.parent)
        if self._lock is None:
            lock = Lock(self._path.with_suffix(".lock"))
            if not lock.is_free():
                self._say(wire.State("waiting", why="another window of this workspace does it"))
                lock.wait()
            self._lock = lock
        note = self._note = self._note or Note(self._path.with_suffix(".reads"))
        opened = Store(self._path)
        opened.open({"folder": as_text(self._root), "version": _VERSION})
        self._store = opened
        care.used(self._path)
        care.sweep(self._path.parent)
        with contextlib.suppress(queue.Empty):  # what came before is seen by looking at everything, and by another process
            while True:
                self._inbox.get_nowait()
        return Indexer(
            self._root,
            opened,
            note,
            ignore_files=self._begin.ignore_files,
            secret_files=self._begin.secret_files,
            rested=self._rested,
            limits=self._begin.limits,
        )

    def _keep(self, indexer: Indexer) -> NoReturn:
        """Everything, then whatever changes."""
        self._walk_at = 0.0
        while True:
            if time.monotonic() >= self._walk_at:
                self._walk(indexer)
            self._hear(self._patience_s(indexer))
            self._waiting.update(indexer.again)
            self._work_off(indexer)
            if time.monotonic() < self._walk_at:
                self._tell(indexer, "ready")

    def _walk(self, indexer: Indexer) -> None:
        began = time.monotonic()
        self._walk_at = math.inf
        self._tell(indexer, "indexing")
        indexer.find_folders()
        looked_s = time.monotonic() - began  # what a walk costs when nothing has changed, or a little less
        self._unwatched = self._watcher.watch(indexer.folders)  # before anything is read, so that no change is lost
        indexer.everything()
        now = time.monotonic()
        every_s = self._begin.pace.unwatched_every_s if self._unwatched else self._begin.pace.walk_every_s
        self._walk_at = min(self._walk_at, now + max(every_s, _SLOW_WALK * looked_s))
        if self._store is not None:
            self._store.tidy()
        self._tell(indexer, "ready")

    def _patience_s(self, indexer: Indexer) -> float:
        """Until the next walk, or until a file that was changing is tried again."""
        return _AGAIN_S if indexer.again else max(0.0, self._walk_at - time.monotonic())

    def _hear(self, patience_s: float) -> None:
        """Take what has come, or wait for it.  Raises `sqlite3.DatabaseError` if a reader found damage, `GoneError`."""
        with contextlib.suppress(queue.Empty):
            paths = self._inbox.get(timeout=min(patience_s, _LONGEST_WAIT_S)) if patience_s else self._inbox.get_nowait()
            while True:
                if paths is None:
                    if self._store is not None:
                        self._store.commit()  # it may have gone
                    raise sqlite3.DatabaseError("found by a reader")
                self._waiting |= paths
                paths = self._inbox.get_nowait()

    def _work_off(self, indexer: Indexer) -> None:
        self._at_work = True
        try:
            while self._waiting:
                paths, self._waiting = self._waiting, set()
                before = frozenset(indexer.folders)
                if len(paths) > _MANY_CHANGES or not indexer.changed(paths):
                    self._walk_at = 0.0
                elif fresh := indexer.folders - before:
                    self._unwatched = self._watcher.watch(indexer.folders)
                    self._waiting.update(folder.rstrip("/") for folder in fresh)  # what came before they were watched
        finally:
            self._at_work = False

    def _rested(self, indexer: Indexer) -> None:
        """Between two stretches of work: what the user has just changed goes first."""
        if not self._at_work:
            self._hear(0.0)
            self._work_off(indexer)
        if time.monotonic() - self._said_at > _TELL_S:
            self._tell(indexer, "indexing")

    def _mend(self, error: BaseException) -> None:
        """Begin anew where that helps and has not just been tried; else rest a while."""
        if self._store is not None:
            self._store.close()
        kind = trouble.of(error)
        if kind not in self._told:
            self._told.add(kind)
            self._say(wire.Notice(trouble.sentence(kind, self._path.parent, error)))
        if kind is Trouble.DAMAGED and time.monotonic() - self._anew_at > _TROUBLE_S:
            self._anew_at = time.monotonic()
            with contextlib.suppress(OSError):
                Store(self._path).set_aside()
                return
        self._say(wire.State("off", why=kind.value))
        time.sleep(_TROUBLE_S)

    def _let_go(self) -> None:
        """The folder was emptied while in use: begin as at the start."""
        if self._store is not None:
            self._store.close()
        if self._note is not None:
            self._note.close()
        if self._lock is not None:
            self._lock.release()
        self._store = self._note = self._lock = None
        time.sleep(_AGAIN_S)  # whoever deletes has time to end

    def _tell(self, indexer: Indexer, state: Literal["indexing", "ready"]) -> None:
        if self._store is None:
            return
        self._said_at = time.monotonic()
        files, symbols = self._store.counts()
        incomplete = f"not complete: {indexer.limits}" if indexer.limits else ""
        why = "; ".join(filter(None, (incomplete, f"not watched: {self._unwatched}" if self._unwatched else "")))
        self._say(wire.State(state, files, symbols, watched=not self._unwatched, why=why))

    def _say(self, message: wire.FromWorker) -> None:
        try:
            self._says.write(msgspec.json.encode(message) + b"\n")
        except OSError:
            os._exit(0)  # nobody hears us


def as_text(path: Path) -> str:
    """A path may hold bytes that are no text."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


if __name__ == "__main__":
    main()
