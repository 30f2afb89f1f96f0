"""An engine process that is our child: started, listened to, and surely gone at the end."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path

from monkeycode_lsp.engines.local import rendezvous

logger = logging.getLogger(__name__)

_TAIL_LINES = 20
_LINE_CHARACTERS = 300
_CRASH_REPORT = "Fatal Python error"
"""Begins what faulthandler prints; what matters to the user stands before it."""
_POLITE_S = 1.0
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
    """One process.  Its stdin is held open for as long as it may live; its stderr goes to our log."""

    def __init__(self, process: asyncio.subprocess.Process, path: Path) -> None:
        # The mutable state is the tail of what it printed, up to a crash report; it changes in the listening
        # task only.
        self._process = process
        self.path = path
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._crashed = False
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def start(cls, command: Sequence[str], path: Path) -> Child:
        """Start a process that will listen at `path`.  Raises `OSError` if there is no such program."""
        pipe = asyncio.subprocess.PIPE
        environment = {**PATIENT, **os.environ, "PYTHONIOENCODING": "utf-8"}
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment)
        return cls(process, path)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def last_words(self) -> str:
        """See `last_words`."""
        return last_words(self._tail)

    async def listens(self) -> None:
        """Return when it can be connected to, or has died: either way it has closed its standard output."""
        if self._process.stdout is not None:
            while await self._process.stdout.read(_LINE_CHARACTERS):
                pass

    async def ended(self, *, timeout_s: float) -> int | None:
        """Its exit status; None: it still runs."""
        # Its last words first; the task is waited for and not awaited, because a timeout would cancel it.
        await asyncio.wait([self._listening], timeout=timeout_s)
        if not self._listening.done():
            return None
        try:
            async with asyncio.timeout(timeout_s):
                return await self._process.wait()
        except TimeoutError:
            return None

    async def stop(self) -> int:
        """See that it is gone, politely first, and its socket with it.  Returns its exit status."""
        try:
            status = await self.ended(timeout_s=_POLITE_S)
            if status is None and self._process.stdin is not None:
                self._process.stdin.close()
                status = await self.ended(timeout_s=_POLITE_S)
        finally:
            # Also when we are cancelled in between.
            if self._process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    self._process.kill()
            rendezvous.remove(self.path)
        if status is None:
            status = await self._process.wait()
        await self._listening
        return status

    async def kill(self) -> int:
        """End it at once."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        return await self.stop()

    async def _listen(self) -> None:
        stream = self._process.stderr
        rest = b""
        while stream is not None and (data := await stream.read(4096)):
            *lines, rest = (rest + data).split(b"\n")
            rest = rest[-_LINE_CHARACTERS:]
            for line in lines:
                self._note(line)
        self._note(rest)

    def _note(self, line: bytes) -> None:
        text = line.decode("utf-8", errors="replace").strip()[:_LINE_CHARACTERS]
        self._crashed = self._crashed or text.startswith(_CRASH_REPORT)
        if text:
            if not self._crashed:
                self._tail.append(text)
            logger.debug("engine process %d: %s", self.pid, text)
