"""Run an async generator in a task of its own.

HTTP clients clean up their connections inside the task that is cancelled, and a second cancel in the
middle of that leaves a connection behind.  Callers are cancelled as often as editors please; the task
here is cancelled once.  What it holds is bounded by the generator, which bounds its answer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing

from monkeycode_lsp.domain import Chunk
from monkeycode_lsp.errors import StreamBrokenError


class Relay:
    """Starts such tasks and ends them all.

    The mutable state is the set of running tasks: one per stream, plus those that still read the
    last bytes of an answer that was already delivered, so that its connection can be used again.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    async def stream(self, source: AsyncGenerator[Chunk, None]) -> AsyncGenerator[Chunk, None]:
        """The chunks of `source`.  Closing this cancels its task once and waits for its end."""
        chunks: deque[Chunk] = deque()
        news = asyncio.Event()
        task = asyncio.create_task(_pump(source, chunks, news))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: news.set())
        task.add_done_callback(_noted)
        delivered = False
        try:
            while chunks or not task.done():
                if not chunks:
                    news.clear()
                    await news.wait()
                    continue
                chunk = chunks.popleft()
                delivered = chunk.finish is not None
                yield chunk
                if delivered:
                    return
            if task.cancelled():
                raise StreamBrokenError("The engine was closed in the middle of an answer.")
            task.result()
        finally:
            if not delivered and not task.done():
                task.cancel()
                await asyncio.wait({task})

    async def aclose(self) -> None:
        """Cancel every task and wait."""
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


async def _pump(source: AsyncGenerator[Chunk, None], chunks: deque[Chunk], news: asyncio.Event) -> None:
    async with aclosing(source):
        async for chunk in source:
            chunks.append(chunk)
            news.set()


def _noted(task: asyncio.Task[None]) -> None:
    """An error after the answer was delivered concerns nobody; asyncio would log one that nobody looked at."""
    if not task.cancelled():
        task.exception()
