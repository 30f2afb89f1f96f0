"""The endpoint without a model as a process of its own, so that it shares no event loop with what is measured.

Run as `python -m monkeycode_lsp.bench.backend_process TEXT PORT`: it tells its port, then in one line of JSON
each what comes and who leaves; each line that it reads is a new pace.  It ends with its standard input.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import NamedTuple, Self

import msgspec

from monkeycode_lsp.bench.backend import Connection, Desk, Pace

MARK = "place_"
"""With a number after it, it names an ask: the newest place of a document has the highest."""

_MARKS = re.compile(MARK.encode() + rb"(\d+)")
_START_S = 15.0


class Event(NamedTuple):
    """A request has come ("seen"), its client has left without the answer ("closed"), or a new pace holds ("pace")."""

    kind: str
    mark: int
    at: float
    """`time.monotonic`, which all processes of a machine share."""


class BackendProcess:
    """One running endpoint, seen from the process that measures."""

    # The mutable state is what the child has told so far; it changes in `_read` only.

    def __init__(self, child: asyncio.subprocess.Process, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.seen: dict[int, float] = {}
        self.closed: dict[int, float] = {}
        self._child = child
        self._n_paces = 0
        self._news = asyncio.Event()
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, text: str, pace: Pace, *, port: int = 0) -> Self:
        """Answer with `text`; port 0: any that is free."""
        pipe = asyncio.subprocess.PIPE
        command = (sys.executable, "-P", "-m", "monkeycode_lsp.bench.backend_process", text, str(port))
        child = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
        assert child.stdout is not None  # noqa: S101 - made above
        async with asyncio.timeout(_START_S):
            told = await child.stdout.readline()
        backend = cls(child, int(told))
        await backend.pace(pace)
        return backend

    async def pace(self, pace: Pace) -> None:
        """Answer like this whatever comes after this call."""
        assert self._child.stdin is not None  # noqa: S101 - `start` made it
        n_paces = self._n_paces
        self._child.stdin.write(msgspec.json.encode(pace) + b"\n")
        await self.until(lambda: self._n_paces > n_paces, _START_S)

    async def until(self, happened: Callable[[], bool], within_s: float) -> bool:
        """Wait for what it tells; whether that has happened."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while not happened():
                    self._news.clear()
                    await self._news.wait()
        return happened()

    async def kill(self) -> None:
        """Without a word of warning; its connections break."""
        if self._child.returncode is None:
            with suppress(ProcessLookupError):
                self._child.kill()
        await self._child.wait()
        await self._reader

    async def aclose(self) -> None:
        await self.kill()

    async def _read(self) -> None:
        assert self._child.stdout is not None  # noqa: S101 - `start` made it
        while line := await self._child.stdout.readline():
            event = msgspec.json.decode(line, type=Event)
            if event.kind == "pace":
                self._n_paces += 1
            else:
                (self.seen if event.kind == "seen" else self.closed)[event.mark] = event.at
            self._news.set()


@asynccontextmanager
async def running(text: str, pace: Pace) -> AsyncIterator[BackendProcess]:
    """A started endpoint; ended with the block."""
    async with aclosing(await BackendProcess.start(text, pace)) as backend:
        yield backend


def mark(body: bytes) -> int:
    """The ask that a request is for; -1: none of ours."""
    return max(map(int, _MARKS.findall(body)), default=-1)


async def _serve(text: str, port: int) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    desk = Desk(text, Pace(), seen=lambda body: _tell("seen", body), closed=lambda body: _tell("closed", body))
    server = await loop.create_server(lambda: Connection(desk), "127.0.0.1", port)

    def keep(pace: Pace) -> None:
        desk.pace = pace
        _tell("pace", b"")

    def obey() -> None:
        with suppress(RuntimeError):  # the loop has ended before us
            for line in sys.stdin.buffer:
                loop.call_soon_threadsafe(keep, msgspec.json.decode(line, type=Pace))
            loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=obey, daemon=True).start()
    _say(b"%d" % server.sockets[0].getsockname()[1])
    await ended.wait()


def _tell(kind: str, body: bytes) -> None:
    _say(msgspec.json.encode(Event(kind, mark(body), time.monotonic())))


def _say(line: bytes) -> None:
    with suppress(BrokenPipeError):  # who measures has gone; our input ends in a moment
        os.write(sys.stdout.fileno(), line + b"\n")


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], int(sys.argv[2])))
