"""A completion server on loopback that does exactly what a test scripts, byte for byte.

    async with CompletionServer(reply("ok")) as server:
        ...  # ask `server.url`
        assert server.requests[0].json["prompt"] == "a"

Each request runs the next script; the last one is used again and again.  A script is an async
function of an `Exchange`.  Events can be awaited everywhere, so no test needs to sleep.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

EVENT_STREAM = "text/event-stream"
_COMPLETIONS = ("/completions", "/completion", "/infill", "/api/generate")
"""Paths that the scripts answer."""
DONE = b"data: [DONE]\n\n"

_REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    422: "Unprocessable Entity",
    503: "Service Unavailable",
}


@dataclass(eq=False)
class Request:
    """One request as it came, and what became of its connection."""

    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case, values byte for byte (Latin-1)."""
    body: bytes
    at: float
    connection: int
    """Number of the connection, from 0."""
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """The client has closed the connection."""
    closed_at: float | None = None

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Exchange:
    """One request and the means to answer it."""

    def __init__(self, server: CompletionServer, request: Request, transport: asyncio.Transport) -> None:
        self.server = server
        self.request = request
        self.keep = True
        """Whether the connection may serve another request."""
        self._transport = transport
        self._chunked = False

    async def head(
        self, status: int = 200, content_type: str = EVENT_STREAM, *, length: int | None = None, chunked: bool = True, **extra: str
    ) -> None:
        """Status line and headers.  Without length and chunks the body ends with the connection."""
        lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Odd')}", f"Content-Type: {content_type}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in extra.items()]
        self._chunked = length is None and chunked
        if length is not None:
            lines.append(f"Content-Length: {length}")
        elif chunked:
            lines.append("Transfer-Encoding: chunked")
        else:
            lines.append("Connection: close")
            self.keep = False
        await self.raw("\r\n".join([*lines, "", ""]).encode())

    async def raw(self, data: bytes) -> None:
        """Bytes on the wire, in a packet of their own."""
        if not self._transport.is_closing():
            self._transport.write(data)
        for _ in range(3):  # lets a client in this process read them before more are written
            await asyncio.sleep(0)

    async def send(self, data: bytes) -> None:
        """Bytes of the body."""
        await self.raw(f"{len(data):x}\r\n".encode() + data + b"\r\n" if self._chunked else data)

    async def event(self, value: Any) -> None:
        await self.send(event(value))

    async def text(self, text: str, finish: str | None = None) -> None:
        await self.event(choice(text, finish))

    async def end(self) -> None:
        """The body's regular end."""
        if self._chunked:
            await self.raw(b"0\r\n\r\n")
        elif not self.keep:
            self.close()

    async def respond(self, status: int, body: bytes | str | Any, content_type: str = "application/json", **extra: str) -> None:
        """A whole response that is no stream."""
        data = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        await self.head(status, content_type, length=len(data), **extra)
        await self.raw(data)

    def close(self) -> None:
        """FIN in both directions."""
        self.keep = False
        self._transport.close()

    def reset(self) -> None:
        """RST."""
        self.keep = False
        _reset(self._transport)

    def half_close(self) -> None:
        """FIN from our side only."""
        self.keep = False
        self._transport.write_eof()

    async def hold(self) -> None:
        """Say nothing until the client closes the connection or the test calls `server.release()`."""
        waits = [asyncio.ensure_future(self.request.closed.wait()), asyncio.ensure_future(self.server.released.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()


Script = Callable[[Exchange], Awaitable[None]]


def choice(text: str | None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """One event of `/v1/completions`."""
    return {"object": "text_completion", "choices": [{"index": 0, "text": text, "finish_reason": finish, "logprobs": None}], **more}


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def reply(*texts: str, finish: str | None = "stop", done: bool = True) -> Script:
    """A good stream: one event per text, the last one with `finish`."""

    async def script(exchange: Exchange) -> None:
        await exchange.head()
        for number, text in enumerate(texts, 1):
            await exchange.text(text, finish if number == len(texts) else None)
        if done:
            await exchange.send(DONE)
        await exchange.end()

    return script


def stream(*pieces: bytes) -> Script:
    """A 200 stream of these bytes, each in its own packet, and its regular end."""

    async def script(exchange: Exchange) -> None:
        await exchange.head()
        for piece in pieces:
            await exchange.send(piece)
        await exchange.end()

    return script


def status(code: int, body: bytes | str | Any = b"", content_type: str = "application/json", **extra: str) -> Script:
    """A whole response that is no stream."""

    async def script(exchange: Exchange) -> None:
        await exchange.respond(code, body, content_type, **extra)

    return script


async def hold(exchange: Exchange) -> None:
    """Take the request and say nothing."""
    await exchange.hold()


class CompletionServer:
    """Serves scripts.  `routes` answer their own path, every time; routes that complete use the scripts in turn; all else is 404.

    `first_connections`: what happens to the first ones before anything is read, `fin` or `rst`.
    """

    def __init__(
        self,
        *scripts: Script,
        routes: Mapping[str, Script] | None = None,
        first_connections: Iterable[str] = (),
        tls: ssl.SSLContext | None = None,
        port: int = 0,
    ) -> None:
        self.requests: list[Request] = []
        """To the scripts; those to `routes` are in `others`."""
        self.others: list[Request] = []
        self.n_connections = 0
        self.released = asyncio.Event()
        self._scripts = scripts or (reply("ok"),)
        self._routes = dict(routes or {})
        self._first = list(first_connections)
        self._tls = tls
        self._port = port
        self._arrived = asyncio.Condition()
        self._connections: set[_Connection] = set()

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", self._port, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.released.set()
        for connection in list(self._connections):
            await connection.stop()

    @property
    def url(self) -> str:
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}"

    def release(self) -> None:
        """Let every held exchange go on."""
        self.released.set()

    async def request(self, number: int) -> Request:
        """The request with this number, once it is there."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) > number)
        return self.requests[number]

    def drop_idle(self) -> None:
        """Close every connection that is between two requests, as servers do after a few seconds."""
        for connection in self._connections:
            connection.drop_if_idle()

    def fate(self) -> str:
        return self._first.pop(0) if self._first else ""

    async def handle(self, request: Request, transport: asyncio.Transport) -> bool:
        """Run the request's script; whether the connection may go on."""
        exchange = Exchange(self, request, transport)
        route = self._routes.get(request.path)
        if route is not None or not request.path.endswith(_COMPLETIONS):
            self.others.append(request)
            await (route or status(404, {"error": "not found"}))(exchange)
            return exchange.keep
        async with self._arrived:
            number = len(self.requests)
            self.requests.append(request)
            self._arrived.notify_all()
        await self._scripts[min(number, len(self._scripts) - 1)](exchange)
        return exchange.keep

    def joined(self, connection: _Connection) -> int:
        self._connections.add(connection)
        self.n_connections += 1
        return self.n_connections - 1

    def left(self, connection: _Connection) -> None:
        self._connections.discard(connection)


class _Connection(asyncio.Protocol):
    """One socket: reads requests, notes the moment it is closed."""

    def __init__(self, server: CompletionServer) -> None:
        self._server = server
        self._buffer = b""
        self._news = asyncio.Event()
        self._gone = False
        self._current: Request | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._number = self._server.joined(self)
        fate = self._server.fate()
        if fate == "rst":
            _reset(transport)
        elif fate == "fin":
            transport.close()
        self._task = asyncio.create_task(self._serve())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._news.set()

    def eof_received(self) -> None:
        self._closed()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed()
        self._server.left(self)

    def drop_if_idle(self) -> None:
        if self._current is None:
            self._transport.close()

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})
        self._transport.abort()

    def _closed(self) -> None:
        self._gone = True
        self._news.set()
        if self._current is not None and self._current.closed_at is None:
            self._current.closed_at = asyncio.get_running_loop().time()
            self._current.closed.set()

    async def _serve(self) -> None:
        while (request := await self._read()) is not None:
            self._current = request
            keep = await self._server.handle(request, self._transport)
            self._current = None
            if not keep:
                return

    async def _read(self) -> Request | None:
        while True:
            head, blank, rest = self._buffer.partition(b"\r\n\r\n")
            if blank:
                first, *lines = head.decode("latin-1").split("\r\n")
                headers = {name.lower(): value.removeprefix(" ") for name, _, value in (line.partition(":") for line in lines)}
                length = int(headers.get("content-length", "0"))
                if len(rest) >= length:
                    self._buffer = rest[length:]
                    method, path, _ = first.split(" ")
                    return Request(method, path, headers, rest[:length], asyncio.get_running_loop().time(), self._number)
            if self._gone:
                return None
            if self._buffer and not self._buffer[:1].isalpha():  # a TLS greeting, for example
                self._transport.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                self._transport.close()
                return None
            self._news.clear()
            await self._news.wait()


def _reset(transport: asyncio.Transport) -> None:
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


class BlackHole:
    """An address that takes no connection and refuses none: its queue of waiting connections is full."""

    def __enter__(self) -> str:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=0)
        address = self._listener.getsockname()
        self._waiting = []
        for _ in range(8):
            client = socket.socket()
            client.settimeout(0)
            client.connect_ex(address)
            self._waiting.append(client)
        return f"http://127.0.0.1:{address[1]}"

    def __exit__(self, *_: object) -> None:
        for client in (*self._waiting, self._listener):
            client.close()


def unused_port() -> int:
    """A port where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
