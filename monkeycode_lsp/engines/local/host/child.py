"""An engine process that we started: detached, so that it lives on when we go, yet never left unburied while we are here."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from monkeycode_lsp.engines.local.host import logfile

logger = logging.getLogger(__name__)

_TAIL_LINES = 1_000
"""Enough for a crash report, which names every thread."""
_LINE_CHARACTERS = 300
_COMPLAINT_BYTES = 1_000
_CRASH_REPORT = "Fatal Python error"
"""Begins what faulthandler prints; what matters to the user stands before it."""
if sys.platform == "win32":
    _FLAGS = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
else:
    _FLAGS = 0
PATIENT = {"GOMP_SPINCOUNT": "2000"}
"""Threads that wait for each other spin for a moment only, then sleep.  By default they spin on, and where another
program wants the same cores a token takes several times as long; at once asleep, an idle machine is half as fast.
What the user has set wins."""


def last_words(lines: Iterable[str]) -> str:
    """The last line that a process printed before it crashed."""
    return next(
        reversed([line.strip() for line in itertools.takewhile(lambda line: not line.startswith(_CRASH_REPORT), lines) if line.strip()]), ""
    )


class Child:
    """One process.  Its stderr goes to its log; a thread of ours waits for its end, however long we or it may live."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path | None) -> None:
        # The mutable state is what it complained of, set by the thread that waits before `_listens`.
        self._process = process
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._listens: asyncio.Future[None] = self._loop.create_future()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self.complaint = ""
        """Why nobody will ever be able to connect, in its own words."""
        threading.Thread(target=self._wait, name=f"engine {process.pid}", daemon=True).start()

    @classmethod
    async def start(cls, command: Sequence[str], log: Path | None) -> Child:
        """Start a process that closes its standard output when it listens.  Raises `OSError` if there is no such program."""
        return cls(await asyncio.to_thread(_start, command, log), log)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def last_words(self) -> str:
        """See `last_words`.  Reads its log."""
        lines = logfile.tail(self._log, _TAIL_LINES) if self._log is not None else []
        return last_words(lines)[:_LINE_CHARACTERS]

    async def listens(self) -> None:
        """Return when it can be connected to, or has died: either way it has closed its standard output."""
        await asyncio.shield(self._listens)

    async def ended(self, *, timeout_s: float) -> int | None:
        """Its exit status; None: it still runs."""
        await asyncio.wait([self._ended], timeout=timeout_s)
        return self._ended.result() if self._ended.done() else None

    async def kill(self) -> int:
        """End it at once, and return its exit status."""
        if not self._ended.done():
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        return await asyncio.shield(self._ended)

    def _wait(self) -> None:
        if self._process.stdout is not None:
            with self._process.stdout as stdout:
                said = stdout.read(_COMPLAINT_BYTES)
                while stdout.read(_COMPLAINT_BYTES):
                    pass
            self.complaint = said.decode("utf-8", errors="replace").strip()
        self._tell(self._listens, None)
        self._tell(self._ended, self._process.wait())

    def _tell(self, future: asyncio.Future[int] | asyncio.Future[None], result: int | None) -> None:
        def set_result() -> None:
            if not future.done():
                future.set_result(result)  # type: ignore[arg-type]  # each future gets its own kind of result

        with contextlib.suppress(RuntimeError):  # the loop has been closed: nobody waits any more
            self._loop.call_soon_threadsafe(set_result)


def _start(command: Sequence[str], log: Path | None) -> subprocess.Popen[bytes]:
    errors: int | None = None
    if log is not None:
        try:
            errors = logfile.open_new(log)
        except OSError as exc:
            logger.warning("The engine process has no log: %s (%s).", exc.strerror, log)
    try:
        return subprocess.Popen(  # noqa: S603 - the command is ours
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if errors is None else errors,
            bufsize=0,
            env={**PATIENT, **os.environ, "PYTHONIOENCODING": "utf-8"},
            cwd=os.path.abspath(os.sep),  # noqa: PTH100 - the user's folder must not stay in use
            start_new_session=True,
            creationflags=_FLAGS,
        )
    finally:
        if errors is not None:
            os.close(errors)
