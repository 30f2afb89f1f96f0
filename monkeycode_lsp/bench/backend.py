"""A completion endpoint without a model: answers at once, over SSE, with as little work as possible."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
N_TOKENS = 8


def _body(text: str) -> bytes:
    """One SSE stream of eight tokens in one chunked body."""
    events = [{"choices": [{"index": 0, "text": piece, "finish_reason": None}]} for piece in _pieces(text)]
    events.append({"choices": [{"index": 0, "text": "", "finish_reason": "stop"}]})
    data = b"".join(b"data: " + msgspec.json.encode(event) + b"\n\n" for event in events) + b"data: [DONE]\n\n"
    return b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data)


def _pieces(text: str) -> list[str]:
    size = -(-len(text) // N_TOKENS)
    return [text[at : at + size] for at in range(0, len(text), size)]


_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_MODELS = b'{"data":[{"id":"qwen2.5-coder"}]}'


class _Connection(asyncio.Protocol):
    def __init__(self, answer: bytes, delay_s: float, closed: asyncio.Queue[float]) -> None:
        self._answer = answer
        self._delay_s = delay_s
        self._closed = closed
        self._buffer = b""
        self._busy = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - TCP
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0 or self._transport is None:
            return
        match = _LENGTH.search(self._buffer, 0, end)
        need = end + 4 + (int(match.group(1)) if match else 0)
        if len(self._buffer) < need:
            return
        is_post = self._buffer.startswith(b"POST")
        self._buffer = self._buffer[need:]
        if not is_post:
            self._transport.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(_MODELS), _MODELS)
            )
        elif self._delay_s:
            self._busy = True
            asyncio.get_running_loop().call_later(self._delay_s, self._reply)
        else:
            self._reply()

    def _reply(self) -> None:
        self._busy = False
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(_HEAD + self._answer)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if self._busy:
            self._closed.put_nowait(asyncio.get_running_loop().time())


class Backend:
    """A running endpoint."""

    def __init__(self, url: str, closed: asyncio.Queue[float]) -> None:
        self.url = url
        self.closed = closed
        """Loop times at which a client closed a connection while its answer was pending."""


@asynccontextmanager
async def serve(text: str, *, delay_s: float = 0.0) -> AsyncIterator[Backend]:
    """Answer every POST with `text` after `delay_s`, on a free loopback port."""
    loop = asyncio.get_running_loop()
    closed: asyncio.Queue[float] = asyncio.Queue()
    answer = _body(text)
    server = await loop.create_server(lambda: _Connection(answer, delay_s, closed), "127.0.0.1", 0)
    async with server:
        yield Backend(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", closed)
