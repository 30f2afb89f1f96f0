"""An engine behind HTTP on a free loopback port, streaming as OpenAI's completions do: the backend of a replay in real time.

A client that closes its connection before the answer is whole ends the engine's stream, as it would at a real server.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import msgspec

from monkeycode_lsp.domain import Prompt
from monkeycode_lsp.engines.base import Engine
from monkeycode_lsp.errors import EngineError

MODEL = "qwen2.5-coder"
"""Whose insert markers the requests hold."""
_PREFIX, _SUFFIX, _MIDDLE = "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_HEAD_END = b"\r\n\r\n"
_STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_MODELS = msgspec.json.encode({"data": [{"id": MODEL}]})
_LIST = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(_MODELS), _MODELS)
_REFUSED = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"


class _Body(msgspec.Struct, frozen=True):
    prompt: str


class _Connection(asyncio.Protocol):
    """One client.

    The mutable state is the bytes of the request that is being read, and the answer that is being written.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._buffer = b""
        self._transport: asyncio.Transport | None = None
        self._answering: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - TCP
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if self._answering is not None:
            self._answering.cancel()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(_HEAD_END)
        if end < 0 or self._transport is None:
            return
        found = _LENGTH.search(self._buffer, 0, end)
        start = end + len(_HEAD_END)
        stop = start + (int(found.group(1)) if found else 0)
        if len(self._buffer) < stop:
            return
        head, body, self._buffer = self._buffer[:end], self._buffer[start:stop], self._buffer[stop:]
        if not head.startswith(b"POST"):
            self._transport.write(_LIST)
        else:
            self._answering = asyncio.create_task(self._answer(body, self._transport))

    async def _answer(self, body: bytes, transport: asyncio.Transport) -> None:
        try:
            prompt = _prompt(msgspec.json.decode(body, type=_Body).prompt)
        except (msgspec.DecodeError, ValueError):
            transport.write(_REFUSED)
            return
        transport.write(_STREAM)
        try:
            async with aclosing(self._engine.stream(prompt)) as chunks:
                async for chunk in chunks:
                    finish = "stop" if chunk.finish else None
                    transport.write(_event(msgspec.json.encode({"choices": [{"index": 0, "text": chunk.text, "finish_reason": finish}]})))
        except EngineError:
            transport.abort()  # the answer stays broken, as the engine's is
            return
        transport.write(_event(b"[DONE]") + b"0\r\n\r\n")


def _prompt(text: str) -> Prompt:
    before, found, rest = text.partition(_SUFFIX)
    after, closed, _ = rest.partition(_MIDDLE)
    if not (found and closed):
        raise ValueError(text)
    return Prompt(segments=(), prefix=before[before.find(_PREFIX) + len(_PREFIX) :], suffix=after)


def _event(data: bytes) -> bytes:
    return b"%x\r\ndata: %b\n\n\r\n" % (len(data) + len(b"data: \n\n"), data)


@asynccontextmanager
async def serve(engine: Engine) -> AsyncIterator[str]:
    """The address at which the engine answers."""
    server = await asyncio.get_running_loop().create_server(lambda: _Connection(engine), "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
