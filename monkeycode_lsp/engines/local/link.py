"""A client's end of the connection to an engine process: one reading task, any number of answers at once."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

from monkeycode_lsp.engines.local import rendezvous, wire

_READ_BYTES = 65_536
Event = wire.Delta | wire.Done | wire.Failed


class LinkLostError(ConnectionError):
    """The connection ended before what was awaited came."""


class Answer:
    """What comes back for one `Generate`."""

    def __init__(self, number: int, send: Callable[[wire.FromClient], None]) -> None:
        # The mutable state is the queue, which `Link` fills, and `is_over`; None in the queue: the connection is lost.
        self.number = number
        self.queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self.is_over = False
        """Whether the worker has nothing more to do for it."""
        self._send = send

    async def events(self) -> AsyncGenerator[Event, None]:
        """Each piece as it comes, up to the `Done` or `Failed`.  Raises `LinkLostError`."""
        while not self.is_over:
            event = await self.queue.get()
            self.is_over = not isinstance(event, wire.Delta)
            if event is None:
                raise LinkLostError
            yield event

    async def stop(self, *, timeout_s: float) -> bool:
        """Cancel and wait until the worker has let go of it; False: it does not answer."""
        if self.is_over:
            return True
        self._send(wire.Cancel(self.number))
        with contextlib.suppress(LinkLostError, TimeoutError):
            async with asyncio.timeout(timeout_s):
                async for _ in self.events():
                    pass
        return self.is_over


class Link:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # The mutable state is the answers that are not over, and what the worker said of itself; it changes
        # in `ask`, `forget` and the reading task only.
        self._reader = reader
        self._writer = writer
        self._numbers = itertools.count(1)
        self._answers: dict[int, Answer] = {}
        self.build: wire.Build | None = None
        self._loaded: asyncio.Future[wire.Ready | wire.LoadFailed | None] = asyncio.get_running_loop().create_future()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, path: Path) -> Link:
        """Connect and say hello.  Raises `OSError`."""
        reader, writer, token = await rendezvous.connect(path)
        link = cls(reader, writer)
        link.send(wire.Hello(token=token))
        return link

    @property
    def is_open(self) -> bool:
        return not self._reading.done()

    async def loaded(self) -> wire.Ready | wire.LoadFailed:
        """What became of the model.  Raises `LinkLostError`."""
        told = await asyncio.shield(self._loaded)
        if told is None:
            raise LinkLostError
        return told

    def ask(self, make: Callable[[int], wire.Generate]) -> Answer:
        """Send an ask; `make` gets its number.  The caller ends it with `forget`.  Raises `FrameError`."""
        answer = Answer(next(self._numbers), self.send)
        self.send(make(answer.number))
        self._answers[answer.number] = answer
        if not self.is_open:
            answer.queue.put_nowait(None)
        return answer

    def forget(self, answer: Answer) -> None:
        """Nobody waits for it any more."""
        self._answers.pop(answer.number, None)

    def send(self, message: wire.FromClient) -> None:
        """Send a frame; on a lost connection it goes nowhere, and the reading task has told already."""
        if not self._writer.is_closing():
            self._writer.write(wire.encode(message))

    async def aclose(self) -> None:
        """End the connection."""
        self._reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def _read(self) -> None:
        frames = wire.frames_from_worker()
        try:
            with contextlib.suppress(OSError, wire.FrameError):
                while data := await self._reader.read(_READ_BYTES):
                    for message in frames.feed(data):
                        self._take(message)
        finally:
            self._writer.close()
            if not self._loaded.done():
                self._loaded.set_result(None)
            for answer in self._answers.values():
                answer.queue.put_nowait(None)

    def _take(self, message: wire.FromWorker) -> None:
        if isinstance(message, wire.Starting):
            self.build = message.build
        elif isinstance(message, wire.Ready | wire.LoadFailed):
            if not self._loaded.done():
                self._loaded.set_result(message)
        elif answer := self._answers.get(message.id):
            answer.queue.put_nowait(message)
