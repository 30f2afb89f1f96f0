"""A completion endpoint without a model: answers over SSE, with as little work as possible.

It speaks OpenAI's API, and as much of Tabby's as its agent needs.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec

from monkeycode_lsp.bench import tabby

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
N_TOKENS = 8


class Pace(msgspec.Struct, frozen=True):
    """How fast it answers."""

    delay_s: float = 0.0
    spread: float = 0.0
    """Share of the delay by which single answers may be faster or slower, so that clients do not fall into step."""
    slots: int = 0
    """Answers that are under way at the same time; others wait their turn.  0: any number."""


def _body(text: str) -> bytes:
    """One SSE stream of eight tokens in one chunked body."""
    events = [{"choices": [{"index": 0, "text": piece, "finish_reason": None}]} for piece in _pieces(text)]
    events.append({"choices": [{"index": 0, "text": "", "finish_reason": "stop"}]})
    data = b"".join(b"data: " + msgspec.json.encode(event) + b"\n\n" for event in events) + b"data: [DONE]\n\n"
    return _HEAD + b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data)


def _pieces(text: str) -> list[str]:
    size = -(-len(text) // N_TOKENS)
    return [text[at : at + size] for at in range(0, len(text), size)]


def _page(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_MODELS = _page(b'{"data":[{"id":"qwen2.5-coder"}]}')
_TABBY = {route: _page(body) for route, body in tabby.PAGES.items()}


class Desk:
    """Who is served, and who waits for a slot."""

    # The mutable state is the pace, the timers of those that are served and the queue; it changes as requests come, end and leave.

    def __init__(
        self, text: str, pace: Pace, *, closed: Callable[[bytes], None], seen: Callable[[bytes], None] = lambda _body: None
    ) -> None:
        """`seen` and `closed` are told the body of a request when it has come, and when its client leaves without the answer."""
        self.pace = pace
        self._answers = (_body(text), _page(tabby.answer(text)))
        self._closed = closed
        self._seen = seen
        self._served: dict[Connection, asyncio.TimerHandle] = {}
        self._waiting: deque[Connection] = deque()

    def came(self, connection: Connection, body: bytes) -> None:
        """A request is whole."""
        self._seen(body)
        if not self.pace.delay_s:
            self._answer(connection)
        elif self.pace.slots and len(self._served) >= self.pace.slots:
            self._waiting.append(connection)
        else:
            self._serve(connection)

    def left(self, connection: Connection, body: bytes) -> None:
        """Its client closed the connection before the answer."""
        timer = self._served.pop(connection, None)
        if timer is None:
            self._waiting.remove(connection)
        else:
            timer.cancel()
            self._next()
        self._closed(body)

    def _serve(self, connection: Connection) -> None:
        delay_s = self.pace.delay_s * random.uniform(1 - self.pace.spread, 1 + self.pace.spread)  # noqa: S311 - no secret
        self._served[connection] = asyncio.get_running_loop().call_later(delay_s, self._done, connection)

    def _done(self, connection: Connection) -> None:
        self._served.pop(connection)
        self._answer(connection)
        self._next()

    def _next(self) -> None:
        if self._waiting:
            self._serve(self._waiting.popleft())

    def _answer(self, connection: Connection) -> None:
        connection.reply(self._answers[connection.for_tabby])


class Connection(asyncio.Protocol):
    """One client's; a request follows the answer to the one before."""

    def __init__(self, desk: Desk) -> None:
        self.for_tabby = False
        self._desk = desk
        self._buffer = b""
        self._asked: bytes | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - TCP
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        match = _LENGTH.search(self._buffer, 0, end)
        need = end + 4 + (int(match.group(1)) if match else 0)
        if len(self._buffer) < need:
            return
        method, target, _ = self._buffer.split(b" ", 2)
        body, self._buffer = self._buffer[end + 4 : need], self._buffer[need:]
        self._route(method, target.partition(b"?")[0], body)

    def _route(self, method: bytes, route: bytes, body: bytes) -> None:
        if route in _TABBY:
            self.reply(_TABBY[route])
        elif method != b"POST":
            self.reply(_MODELS)
        else:
            self.for_tabby = tabby.is_asked(body)
            self._asked = body
            self._desk.came(self, body)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def reply(self, answer: bytes) -> None:
        """The whole response."""
        self._asked = None
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if self._asked is not None:
            self._desk.left(self, self._asked)


class Backend:
    """A running endpoint."""

    def __init__(self, url: str, closed: asyncio.Queue[float]) -> None:
        self.url = url
        self.closed = closed
        """Loop times at which a client closed a connection while its answer was pending."""


@asynccontextmanager
async def serve(text: str, *, delay_s: float = 0.0) -> AsyncIterator[Backend]:
    """Answer every completion request with `text` after `delay_s`, on a free loopback port of this process."""
    loop = asyncio.get_running_loop()
    closed: asyncio.Queue[float] = asyncio.Queue()
    desk = Desk(text, Pace(delay_s), closed=lambda _body: closed.put_nowait(loop.time()))
    connections: list[Connection] = []

    def connect() -> Connection:
        connections.append(Connection(desk))
        return connections[-1]

    server = await loop.create_server(connect, "127.0.0.1", 0)
    try:
        yield Backend(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", closed)
    finally:
        server.close()
        for connection in connections:  # newer Pythons wait for those that clients keep open
            connection.close()
