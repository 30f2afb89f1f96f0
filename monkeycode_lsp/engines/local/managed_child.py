"""One keeper process with the server that it keeps: started, listened to, and surely gone at the end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import signal
import sys
from collections import deque
from collections.abc import Sequence

logger = logging.getLogger(__name__)

PYTHON = (sys.executable, "-P", "-m")
"""`-P`: what lies in the user's working folder is never imported."""
KEEPER = "monkeycode_lsp.engines.local.managed_server"
_LISTENING = re.compile(r"listening on (http://\S+)")
_END_S = 2.0
_COMPLAINTS = 5
_LONGEST_LINE = 65_536


class ManagedChild:
    """The keeper.

    The mutable state is what was heard from it: its address, and the last lines that it printed.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._lines: deque[str] = deque(maxlen=_COMPLAINTS)
        self._address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._listening = asyncio.create_task(self._listen())
        self._over = asyncio.create_task(process.wait())

    @classmethod
    async def start(cls, command: Sequence[str], *, environ: dict[str, str]) -> ManagedChild:
        """Start `command` under a keeper.  What both print is ours, so nothing of it can reach our stdout."""
        process = await asyncio.create_subprocess_exec(
            *PYTHON,
            KEEPER,
            "keep",
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            limit=_LONGEST_LINE,
            env=environ,
            start_new_session=True,  # so that keeper and server can be ended together
        )
        return cls(process)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return not self._over.done()

    @property
    def status(self) -> int | None:
        """Exit status of the server; 128 and more: the signal that it died of."""
        return self._process.returncode

    @property
    def died_of(self) -> str:
        """How it died, in words: `SIGILL`, `exit status 1`."""
        status = self.status or 0
        number = status - 128 if status > 128 else -status  # noqa: PLR2004 - a shell's convention
        if number > 0:
            with contextlib.suppress(ValueError):
                return signal.Signals(number).name
        return f"exit status {status}"

    @property
    def crashed(self) -> bool:
        """Whether a signal killed it."""
        return self.died_of.startswith("SIG")

    async def address(self) -> str | None:
        """Where the server listens; None: it died before it told."""
        either: set[asyncio.Future[str] | asyncio.Future[int]] = {self._address, self._over}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        return self._address.result() if self._address.done() else None

    async def over(self, within_s: float) -> bool:
        """Whether it ends within that time."""
        await asyncio.wait({self._over}, timeout=within_s)
        return not self.alive

    async def stop(self) -> None:
        """End keeper and server and wait until both are gone."""
        if self._process.stdin is not None:
            self._process.stdin.close()  # the keeper ends the server and then itself
        if not await self.over(_END_S):
            self._kill()
            await self.over(_END_S)
        elif sys.platform != "win32":
            self._kill()  # a keeper that was killed itself leaves its server behind
        self._listening.cancel()
        await asyncio.wait({self._listening})

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._process.kill()
            else:
                os.killpg(self._process.pid, signal.SIGKILL)

    async def _listen(self) -> None:
        output = self._process.stdout
        while output is not None:
            try:
                line = await output.readline()
            except ValueError:  # a line longer than any log's
                continue
            if not line:
                return
            self._heard(line.decode("utf-8", "replace").strip())

    def _heard(self, line: str) -> None:
        logger.debug("managed engine: %s", line)
        self._lines.append(line)
        found = _LISTENING.search(line)
        if found and not self._address.done():
            self._address.set_result(found.group(1))
