"""Suggestions on disk, and what the user was told about them."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from contextlib import asynccontextmanager, closing

from monkeycode_lsp.recall.disk import Disk
from monkeycode_lsp.recall.disk_store import FILE
from monkeycode_lsp.recall.record import Record

WEEK_S = 604_800


def key(number):
    return number.to_bytes(16, "big")


def record(text):
    return Record(version=1, text=text, indent="    ", confidence=-0.25, engine="engine", settings="settings")


class Window(Disk):
    """One window's disk tier, and all that it warned of."""

    def __init__(self, folder, *, ttl_s=WEEK_S, most_bytes=2**24, **more):
        loop = asyncio.get_running_loop()
        self.said = []
        self._heard = asyncio.Condition()
        super().__init__(folder, ttl_s=ttl_s, most_bytes=most_bytes, warn=lambda text: loop.call_soon_threadsafe(self._hear, text), **more)

    def _hear(self, text):
        self.said.append(text)
        self._telling = asyncio.ensure_future(self._tell())

    async def _tell(self):
        async with self._heard:
            self._heard.notify_all()

    async def told(self, n=1):
        """Wait for the n-th warning."""
        async with asyncio.timeout(20), self._heard:
            await self._heard.wait_for(lambda: len(self.said) >= n)
        return self.said[n - 1]

    async def done(self):
        """Everything asked for so far has been done."""
        await self._ask(lambda _: None)

    async def find(self, number):
        """What `get` finds when this machine is not too busy to answer in time."""
        return await self._ask(lambda keeper: keeper.get(key(number)))

    async def _ask(self, work):
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        self.open()
        job = lambda keeper: loop.call_soon_threadsafe(answer.set_result, work(keeper))  # noqa: E731 - one expression
        await asyncio.to_thread(self._jobs.put, job, timeout=20)  # waits for room, which `put` and `get` never do
        return await asyncio.wait_for(answer, 20)

    async def keep(self, number, text):
        self.put(key(number), record(text))
        await self.done()


@asynccontextmanager
async def window(folder, **how):
    opened = Window(folder, **how)
    try:
        yield opened
    finally:
        await opened.aclose()


def sql(folder, statement, *values):
    """What another program does to the database."""
    with closing(sqlite3.connect(folder / FILE)) as connection, connection:
        return connection.execute(statement, values).fetchall()


async def script(text, *arguments):
    """Another process that runs `text`."""
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", text, *map(str, arguments), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
