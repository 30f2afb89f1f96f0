"""A client's end of the connection to an engine process: one reading task, any number of answers at once.

An open link has been welcomed, so somebody is there.  While something is awaited the link sees for itself whether that is still
so: silence is answered by a ping, and a process that gives no pong is ended, because it would take the answers with it.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import itertools
import logging
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from monkeycode_lsp.engines.local import wire
from monkeycode_lsp.engines.local.host import rendezvous
from monkeycode_lsp.engines.local.host.peers import ELSEWHERE
from monkeycode_lsp.engines.local.host.rendezvous import Connection

logger = logging.getLogger(__name__)

_READ_BYTES = 65_536
_CLOSE_S = 1.0
T = TypeVar("T")
Event = wire.Delta | wire.Done | wire.Failed
Told = wire.Ready | wire.LoadFailed


class LinkLostError(ConnectionError):
    """The connection ended before what was awaited came."""


class NotWelcomeError(ConnectionError):
    """The process ended the connection instead of a welcome: it is leaving, or we are not its user."""


class HungError(ConnectionError):
    """Somebody accepts connections and does nothing more."""

    def __init__(self, pid: int | None) -> None:
        super().__init__("a process accepts connections and says nothing")
        self.pid = pid
        """None: the system does not tell."""


class Patience(msgspec.Struct, frozen=True):
    """How long silence is borne."""

    welcome_s: float = 5.0
    """After a hello."""
    quiet_s: float = 5.0
    """While something is awaited, until it is asked whether it is still there."""
    pong_s: float = 5.0
    """For the answer to that …"""
    loading_s: float = 60.0
    """… and while it loads, when a library may hold everything up."""


class Answer:
    """What comes back for one `Generate`."""

    def __init__(self, number: int, send: Callable[[wire.FromClient], None]) -> None:
        # The mutable state is the queue, which `Link` fills, and `is_over`; None in the queue: the connection is lost.
        self.number = number
        self.queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self.is_over = False
        """Whether the process has nothing more to do for it."""
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
        """Cancel and wait until the process has let go of it; False: it has not in that time."""
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

    def __init__(self, connection: Connection, patience: Patience | None = None) -> None:
        # The mutable state is the answers that are not over, the pings, counts and looks that wait, and what the process said of
        # itself; it changes in `ask`, `forget`, `ping`, `count`, `status` and the reading task only.
        loop = asyncio.get_running_loop()
        self._reader, self._writer = connection.reader, connection.writer
        self._patience = patience or Patience()
        self._numbers = itertools.count(1)
        self._answers: dict[int, Answer] = {}
        self._pings: dict[int, asyncio.Future[bool]] = {}
        self._counts: dict[int, asyncio.Future[tuple[int, ...] | None]] = {}
        self._has_answers = asyncio.Event()
        self._heard_at = loop.time()
        self.pid = connection.peer.pid if connection.peer is not None else None
        """Of the process; None: not known yet; `ELSEWHERE`: it cannot be ended from here."""
        self.build: wire.Build | None = None
        self.serving: wire.Serving | None = None
        """Where a managed process is to be asked."""
        self.has_left = False
        """Whether it said that it leaves in peace."""
        self.was_hung = False
        """Whether we ended it because it did not answer."""
        self._welcome: asyncio.Future[bool] = loop.create_future()
        self._loaded: asyncio.Future[Told | None] = loop.create_future()
        self._looks: collections.deque[asyncio.Future[wire.Status | None]] = collections.deque()
        self._reading = asyncio.create_task(self._read())
        self._watching: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, path: Path, *, purpose: Literal["ask", "control"] = "ask", patience: Patience | None = None) -> Link:
        """Connect and be welcomed.  Raises `OSError`, among them `NotWelcomeError` and `HungError`."""
        connection = await rendezvous.connect(path)
        link = cls(connection, patience)
        try:
            link.send(wire.Hello(token=connection.token, purpose=purpose))
            async with asyncio.timeout(link._patience.welcome_s):
                if await link._welcome:
                    link._watching = asyncio.create_task(link._watch()) if purpose == "ask" else None
                    return link
            raise NotWelcomeError("the process did not let us in")
        except TimeoutError:
            raise HungError(link.pid) from None
        finally:
            if link._welcome.cancelled() or not (link._welcome.done() and link._welcome.result()):
                await link.aclose()

    @property
    def is_open(self) -> bool:
        """Whether the next ask may go here."""
        return not self._reading.done() and not self.has_left

    async def loaded(self) -> Told:
        """What became of the model.  Raises `LinkLostError`."""
        told = await asyncio.shield(self._loaded)
        if told is None:
            raise LinkLostError
        return told

    async def status(self) -> wire.Status:
        """How it goes.  Raises `LinkLostError`."""
        # Each look has an answer of its own, in order; one that nobody waits for any more still takes its turn.
        look: asyncio.Future[wire.Status | None] = asyncio.get_running_loop().create_future()
        self._looks.append(look)
        self.send(wire.Look())
        status = await look if self.is_open else None
        if status is None:
            raise LinkLostError
        return status

    def ask(self, make: Callable[[int], wire.Generate]) -> Answer:
        """Send an ask; `make` gets its number.  The caller ends it with `forget`.  Raises `FrameError`."""
        answer = Answer(next(self._numbers), self.send)
        self.send(make(answer.number))
        if not self._answers:
            self._heard_at = asyncio.get_running_loop().time()  # before this nothing had to be said
        self._answers[answer.number] = answer
        self._has_answers.set()
        if not self.is_open:
            answer.queue.put_nowait(None)
        return answer

    def forget(self, answer: Answer) -> None:
        """Nobody waits for it any more."""
        self._answers.pop(answer.number, None)
        if not self._answers:
            self._has_answers.clear()

    def send(self, message: wire.FromClient) -> None:
        """Send a frame; on a lost connection it goes nowhere, and the reading task has told already."""
        if not self._writer.is_closing():
            self._writer.write(wire.encode(message))

    async def ping(self, *, timeout_s: float) -> bool:
        """Whether it answers within that time."""
        number = next(self._numbers)
        pong = self._pings[number] = asyncio.get_running_loop().create_future()
        self.send(wire.Ping(number))
        try:
            await asyncio.wait([pong, self._reading], timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            return pong.done()
        finally:
            del self._pings[number]

    async def count(self, texts: Sequence[str], *, timeout_s: float) -> list[int] | None:
        """Tokens of each text; None: it cannot tell, or not in that time.  Raises `FrameError`."""
        number = next(self._numbers)
        counted: asyncio.Future[tuple[int, ...] | None] = asyncio.get_running_loop().create_future()
        self._counts[number] = counted
        try:
            self.send(wire.Count(number, tuple(texts)))
            either: list[asyncio.Future[Any]] = [counted, self._reading]
            await asyncio.wait(either, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            tokens = counted.result() if counted.done() else None
            return list(tokens) if tokens is not None and len(tokens) == len(texts) else None
        finally:
            del self._counts[number]

    def kill(self) -> None:
        """End the process at once: it does not answer, and whoever asks next needs another one.

        Out of reach only the connection ends.
        """
        logger.warning("The engine process %s does not answer; it is stopped.", self.pid)
        self.was_hung = True
        kill(self.pid)
        self._reading.cancel()

    async def ended(self) -> None:
        """Return when the connection has ended."""
        await asyncio.wait([self._reading])

    async def aclose(self) -> None:
        """End the connection."""
        tasks = [task for task in (self._reading, self._watching) if task is not None and task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        self._writer.close()
        try:
            async with asyncio.timeout(_CLOSE_S):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            self._writer.transport.abort()  # what we have not sent yet is never read

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._reading.done():
            if self._loaded.done():
                await self._has_answers.wait()
            left_s = self._heard_at + self._patience.quiet_s - loop.time()
            if left_s > 0:
                await asyncio.sleep(left_s)
            elif not await self.ping(timeout_s=self._patience.pong_s if self._loaded.done() else self._patience.loading_s):
                if not self._reading.done():
                    self.kill()
                return

    async def _read(self) -> None:
        frames = wire.frames_from_worker()
        try:
            with contextlib.suppress(OSError, wire.FrameError):
                while data := await self._reader.read(_READ_BYTES):
                    self._heard_at = asyncio.get_running_loop().time()
                    for message in frames.feed(data):
                        self._take(message)
        finally:
            self._writer.close()
            self._lose()

    def _lose(self) -> None:
        """Nothing more comes for whoever waits."""
        _settle(self._welcome, value=False)
        _settle(self._loaded, None)
        for look in self._looks:
            _settle(look, None)
        self._looks.clear()
        for answer in self._answers.values():
            answer.queue.put_nowait(None)

    def _take(self, message: wire.FromWorker) -> None:
        match message:
            case wire.Delta() | wire.Done() | wire.Failed():
                if answer := self._answers.get(message.id):
                    answer.queue.put_nowait(message)
            case wire.Pong():
                _settle(self._pings.get(message.number), value=True)
            case wire.Counted():
                _settle(self._counts.get(message.number), message.tokens)
            case wire.Status():
                _settle(self._looks.popleft() if self._looks else None, message)
            case wire.Leaving():
                # What still comes is the end of answers that were cut off: they may be asked of the next process.
                self.has_left = True
                self._lose()
            case _:
                self._introduce(message)

    def _introduce(self, message: wire.Welcome | wire.Starting | wire.Serving | Told) -> None:
        """What a new client is told."""
        match message:
            case wire.Welcome():
                self.pid = message.pid if self.pid is None else self.pid
                _settle(self._welcome, value=True)
            case wire.Starting():
                self.build = message.build
            case wire.Serving():
                self.serving = message
            case _:
                _settle(self._loaded, message)


def _settle(future: asyncio.Future[T] | None, value: T) -> None:
    if future is not None and not future.done():
        future.set_result(value)


def kill(pid: int | None) -> None:
    """End a process that the system or its own note named to us, unless it is `ELSEWHERE`."""
    number = signal.SIGTERM
    if sys.platform != "win32":
        number = signal.SIGKILL
    if pid is not None and pid != ELSEWHERE:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
