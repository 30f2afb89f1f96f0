"""Bytes in, frames out: stdio, TCP and WebSocket.

A frame is handed over the moment it is complete, on the loop and in order, so that the handler's
first stretch (the snapshot) runs before the next message is looked at.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import stat
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO, Protocol

logger = logging.getLogger(__name__)

MOST_FRAME_BYTES = 256 * 1024 * 1024
MOST_UNREAD_BYTES = 64 * 1024 * 1024
"""An editor that reads nothing for so long is gone."""
_FIELD = rb"content-length[ \t]*:[ \t]*(\d{1,15})[ \t]*\r?(?:\n|$)"
_LENGTH = re.compile(rb"(?:^|\n)" + _FIELD, re.IGNORECASE)
_LENGTH_SOMEWHERE = re.compile(_FIELD, re.IGNORECASE)
"""After a frame whose length was wrong, its remains stand right before the next header."""
_MOST_HEADER_BYTES = 16 * 1024

Receive = Callable[[bytes], None]


class Frames:
    """Cuts a byte stream into the bodies of its frames.  Headers without a usable length are passed over."""

    # The mutable state is the unread bytes, and the length of the body that they begin with once it is known.

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._length: int | None = None

    def feed(self, data: bytes) -> list[bytes]:
        """The bodies that are complete with `data`."""
        self._buffer += data
        bodies: list[bytes] = []
        while True:
            if self._length is None and not self._read_header():
                return bodies
            if self._length is None:
                continue
            if len(self._buffer) < self._length:
                return bodies
            bodies.append(bytes(self._buffer[: self._length]))
            del self._buffer[: self._length]
            self._length = None

    def _read_header(self) -> bool:
        """Take one header block; whether there was one."""
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _MOST_HEADER_BYTES:
                # Not a header at all: keep only what may be the start of one.
                logger.error("bytes without a frame header were dropped")
                del self._buffer[: -len(b"Content-Length: 99999999\r\n\r")]
            return False
        header = bytes(self._buffer[:end])
        del self._buffer[: end + 4]
        lengths = _LENGTH.findall(header) or _LENGTH_SOMEWHERE.findall(header)
        if not lengths:
            logger.error("a frame without Content-Length was dropped")
            return True
        length = int(lengths[-1])
        if length > MOST_FRAME_BYTES:
            # Not believed: waiting for so much would make us deaf.  Whatever comes is passed over up to the next header.
            logger.error("a frame of %d bytes was dropped", length)
        else:
            self._length = length
        return True


class Writer(Protocol):
    """Where replies go."""

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


class _StreamWriter:
    def __init__(self, transport: asyncio.WriteTransport, lost: Callable[[], None]) -> None:
        self._transport = transport
        self._lost = lost

    def write(self, data: bytes) -> None:
        if self._transport.is_closing():
            return
        self._transport.write(data)
        if self._transport.get_write_buffer_size() > MOST_UNREAD_BYTES:
            logger.error("the editor reads nothing; giving up")
            self._transport.abort()
            self._lost()

    def close(self) -> None:
        self._transport.close()


class _FileWriter:
    """For a standard output that the loop cannot watch (a file, a Windows console)."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class _Input(asyncio.Protocol):
    def __init__(self, receive: Receive, lost: Callable[[], None]) -> None:
        self._frames = Frames()
        self._receive = receive
        self._lost = lost

    def data_received(self, data: bytes) -> None:
        for body in self._frames.feed(data):
            self._receive(body)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._lost()


class Peer(Protocol):
    """What a transport serves: the server's protocol."""

    def receive(self, body: bytes) -> None: ...

    def connected(self, writer: Writer, *, framed: bool) -> None: ...


def claim_stdout() -> BinaryIO:
    """Keep descriptor 1 for the protocol; everybody else's prints go to standard error."""
    _open_standard_streams()
    protocol = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return protocol


def _open_standard_streams() -> None:
    """What our parent closed is as good as empty; left closed, its number would go to the next file that is opened."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - for as long as the process lives


async def serve_stdio(peer: Peer, stdout: BinaryIO, ended: asyncio.Event) -> None:
    """Serve the editor at the other end of our pipes until `ended` is set or they close."""
    loop = asyncio.get_running_loop()
    peer.connected(await _stdout_writer(loop, stdout, ended), framed=True)
    if not await _watch_stdin(loop, lambda: _Input(peer.receive, ended.set)):
        threading.Thread(target=_read_blocking, args=(loop, peer, ended), name="stdin", daemon=True).start()
    await ended.wait()


async def _watch_stdin(loop: asyncio.AbstractEventLoop, protocol: Callable[[], asyncio.Protocol]) -> bool:
    """Let the loop read standard input; False: it cannot."""
    stdin = sys.stdin.buffer
    mode = os.fstat(stdin.fileno()).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stdin.isatty()):
        return False  # the loop would take any character device, and fail later for some (/dev/null)
    try:
        await loop.connect_read_pipe(protocol, stdin)
    except (ValueError, OSError, NotImplementedError):
        return False
    return True


async def _stdout_writer(loop: asyncio.AbstractEventLoop, stdout: BinaryIO, ended: asyncio.Event) -> Writer:
    try:
        transport, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, stdout)
    except (ValueError, OSError, NotImplementedError):
        return _FileWriter(stdout)
    return _StreamWriter(transport, ended.set)


def _read_blocking(loop: asyncio.AbstractEventLoop, peer: Peer, ended: asyncio.Event) -> None:
    frames = Frames()
    with contextlib.suppress(OSError):  # an input that cannot be read has ended
        while data := os.read(0, 65536):
            for body in frames.feed(data):
                loop.call_soon_threadsafe(peer.receive, body)
    loop.call_soon_threadsafe(ended.set)


async def serve_tcp(peer: Peer, host: str, port: int, ended: asyncio.Event, listening: Callable[[int], None]) -> None:
    """Serve the first editor that connects, then end."""
    loop = asyncio.get_running_loop()

    class Connection(_Input):
        taken = False

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            if Connection.taken or not isinstance(transport, asyncio.WriteTransport):
                transport.close()
                return
            Connection.taken = self.mine = True
            peer.connected(_StreamWriter(transport, ended.set), framed=True)

        def connection_lost(self, exc: Exception | None) -> None:
            if getattr(self, "mine", False):
                super().connection_lost(exc)

    server = await loop.create_server(lambda: Connection(peer.receive, ended.set), host, port)
    async with server:
        listening(server.sockets[0].getsockname()[1])
        await ended.wait()


async def serve_websocket(peer: Peer, host: str, port: int, ended: asyncio.Event, listening: Callable[[int], None]) -> None:
    """Serve the first editor that connects; a message is a frame.  Needs the extra `ws`."""
    from websockets.asyncio.server import ServerConnection, serve  # noqa: PLC0415 - an extra

    taken = False

    async def connection(socket: ServerConnection) -> None:
        nonlocal taken
        if taken:
            return
        taken = True
        outbox: asyncio.Queue[bytes] = asyncio.Queue()

        class SocketWriter:
            def write(self, data: bytes) -> None:
                outbox.put_nowait(data)

            def close(self) -> None:
                ended.set()

        async def send() -> None:
            while True:
                await socket.send((await outbox.get()).decode())

        sender = asyncio.create_task(send())
        peer.connected(SocketWriter(), framed=False)
        try:
            async for message in socket:
                peer.receive(message.encode() if isinstance(message, str) else message)
        finally:
            sender.cancel()
            ended.set()

    async with serve(connection, host, port, max_size=MOST_FRAME_BYTES) as server:
        listening(next(iter(server.sockets)).getsockname()[1])
        await ended.wait()
