"""An HTTP/2 server on loopback that does what a test scripts, and notes which streams the client resets.

async with Http2Server(reply(b"ok"), tls=context) as server:
    ...  # ask `server.url`
    await server.asked[0].reset.wait()
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Self

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings


class Asked:
    """One stream: the request as it came, and the means to answer it."""

    def __init__(self, connection: _Connection, number: int, headers: dict[str, str]) -> None:
        self.number = number
        self.connection = connection
        self.headers = headers
        self.body = b""
        self.whole = asyncio.Event()
        """The request is there."""
        self.reset = asyncio.Event()
        """The client has reset the stream, or its connection is gone."""
        self.reset_at = 0.0
        self.reset_code: int | None = None
        """As the client gave it; None: the connection went instead."""

    def head(self, status: int = 200, content_type: str = "text/event-stream", **extra: str) -> None:
        more = [(name.replace("_", "-"), value) for name, value in extra.items()]
        self.connection.h2.send_headers(self.number, [(":status", str(status)), ("content-type", content_type), *more])
        self.connection.flush()

    async def send(self, data: bytes, *, end: bool = False) -> None:
        """As flow control allows."""
        while data or end:
            room = min(self.connection.h2.local_flow_control_window(self.number), self.connection.h2.max_outbound_frame_size)
            if data and room <= 0:
                self.connection.news.clear()
                await self.connection.news.wait()
                continue
            piece, data = data[:room], data[room:]
            self.connection.h2.send_data(self.number, piece, end_stream=end and not data)
            self.connection.flush()
            await asyncio.sleep(0)
            if not data:
                return

    def refuse(self, code: int) -> None:
        """Reset the stream from our side."""
        self.connection.h2.reset_stream(self.number, code)
        self.connection.flush()

    async def hold(self) -> None:
        """Say nothing until the client gives up."""
        await self.reset.wait()


Script = Callable[[Asked], Awaitable[None]]


def reply(*pieces: bytes) -> Script:
    """A good answer."""

    async def script(asked: Asked) -> None:
        asked.head()
        for piece in pieces[:-1]:
            await asked.send(piece)
        await asked.send(pieces[-1], end=True)

    return script


async def hold(asked: Asked) -> None:
    """Take the request and say nothing."""
    await asked.hold()


class Http2Server:
    """Each request runs the next script; the last one is used again and again."""

    def __init__(self, *scripts: Script, tls: ssl.SSLContext, max_streams: int = 100, port: int = 0) -> None:
        self.asked: list[Asked] = []
        self.connections: list[_Connection] = []
        self.max_streams = max_streams
        self.port = port
        self.scripts = scripts
        self.tasks: set[asyncio.Task[None]] = set()
        self.arrived = asyncio.Condition()
        tls.set_alpn_protocols(["h2"])
        self._tls = tls

    async def __aenter__(self) -> Self:
        self._server = await asyncio.get_running_loop().create_server(lambda: _Connection(self), "127.0.0.1", self.port, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for connection in self.connections:
            connection.transport.abort()
        for task in self.tasks:
            task.cancel()
        if self.tasks:
            await asyncio.wait(self.tasks)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    async def stream(self, number: int) -> Asked:
        """The request with this number, once it is whole."""
        async with self.arrived:
            await self.arrived.wait_for(lambda: len(self.asked) > number)
        await self.asked[number].whole.wait()
        return self.asked[number]

    async def run(self, asked: Asked) -> None:
        async with self.arrived:
            number = len(self.asked)
            self.asked.append(asked)
            self.arrived.notify_all()
        await asked.whole.wait()
        await self.scripts[min(number, len(self.scripts) - 1)](asked)


class _Connection(asyncio.Protocol):
    """One client."""

    def __init__(self, server: Http2Server) -> None:
        self.server = server
        self.streams: dict[int, Asked] = {}
        self.news = asyncio.Event()
        self.lost = asyncio.Event()
        self.pings = 0
        self.mute = False
        """Say nothing any more, as when the way between is cut."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server.connections.append(self)
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.h2.local_settings = h2.settings.Settings(
            client=False, initial_values={h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: self.server.max_streams}
        )
        self.h2.initiate_connection()
        self.flush()

    def flush(self) -> None:
        data = self.h2.data_to_send()
        if data and not self.mute and not self.transport.is_closing():
            self.transport.write(data)

    def go_away(self, last: int | None = None) -> None:
        """Take no more requests; those after `last` were not begun.  The frame by hand: `h2` would say nothing after it."""
        last = max(self.streams, default=0) if last is None else last
        self.transport.write(b"\0\0\x08\x07\0\0\0\0\0" + last.to_bytes(4) + b"\0\0\0\0")

    def data_received(self, data: bytes) -> None:
        if self.mute:
            return
        for event in self.h2.receive_data(data):
            self._event(event)
        self.news.set()
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()
        self.news.set()
        for asked in self.streams.values():
            asked.reset.set()

    def _event(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.RequestReceived):
            asked = self.streams[event.stream_id] = Asked(self, event.stream_id, dict(event.headers))
            task = asyncio.ensure_future(self.server.run(asked))
            self.server.tasks.add(task)
            task.add_done_callback(self.server.tasks.discard)
        elif isinstance(event, h2.events.DataReceived):
            self.streams[event.stream_id].body += event.data
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            self.streams[event.stream_id].whole.set()
        elif isinstance(event, h2.events.PingReceived):
            self.pings += 1
        elif isinstance(event, h2.events.StreamReset):
            asked = self.streams[event.stream_id]
            asked.reset_code, asked.reset_at = event.error_code, asyncio.get_running_loop().time()
            asked.reset.set()
