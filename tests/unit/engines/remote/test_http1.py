"""A connection that is kept: what was said beyond an answer's end never becomes the answer to another request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from monkeycode_lsp.engines.remote import address
from monkeycode_lsp.engines.remote.http import http1
from monkeycode_lsp.engines.remote.http.transport import Transport
from monkeycode_lsp.errors import ContextOverflowError, StreamBrokenError
from tests.servers import CompletionServer, Exchange, reply
from tests.unit.engines.remote import asking

PATH = "/v1/completions"
BODY = b"whole"
SURPLUS = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Transport]:
    transport = Transport(address.parse(url), {}, environ={})
    try:
        yield transport
    finally:
        await transport.aclose()


async def ask(transport: Transport, body: bytes = b"{}") -> bytes:
    answer = await transport.send(PATH, body)
    try:
        return await answer.body()
    finally:
        await answer.aclose()


@asynccontextmanager
async def listening(serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> AsyncIterator[str]:
    """The address of a server that does no more than `serve`; its connections stay open until the end."""

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await serve(reader, writer)

    writers: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(accepted, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
            with suppress(ConnectionError):
                await writer.wait_closed()


ANSWERS = {
    "length": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" + BODY,
    "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n" + BODY + b"\r\n0\r\n\r\n",
    "trailers": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n" + BODY + b"\r\n0\r\nx: y\r\n\r\n",
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "not modified": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
}


@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.parametrize("surplus", [SURPLUS, SURPLUS[:9], b"\n"])
async def test_a_connection_that_has_said_too_much_is_closed(kind: str, surplus: bytes) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.raw(ANSWERS[kind] + surplus)

    async with CompletionServer(script, reply("mine")) as server, connected(server.url) as transport:
        assert await ask(transport) in {BODY, b""}
        assert b"mine" in await ask(transport)
        assert [request.connection for request in server.requests] == [0, 1]


@pytest.mark.parametrize("kind", ANSWERS)
async def test_a_connection_that_has_said_what_it_should_is_kept(kind: str) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.raw(ANSWERS[kind])

    async with CompletionServer(script, reply("mine")) as server, connected(server.url) as transport:
        await ask(transport)
        assert b"mine" in await ask(transport)
        assert [request.connection for request in server.requests] == [0, 0]


async def until_spoken(transport: Transport) -> None:
    async with asyncio.timeout(5):
        while transport._connections[0].wire.quiet:  # noqa: ASYNC110 - the wire tells nobody that something has come
            await asyncio.sleep(0.001)


async def test_a_kept_connection_that_speaks_between_two_requests_is_closed() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.raw(ANSWERS["length"])
        await asked.wait()
        await exchange.raw(SURPLUS)

    asked = asyncio.Event()
    async with CompletionServer(script, reply("mine")) as server, connected(server.url) as transport:
        assert await ask(transport) == BODY
        asked.set()
        await until_spoken(transport)
        assert b"mine" in await ask(transport)
        assert [request.connection for request in server.requests] == [0, 1]


async def test_a_connection_laid_ready_that_speaks_before_it_is_asked_is_closed() -> None:
    n_connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal n_connections
        n_connections += 1
        if n_connections == 1:
            writer.write(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
        else:
            await reader.readuntil(b"{}")
            writer.write(ANSWERS["length"])

    async with listening(serve) as url, connected(url) as transport:
        transport.warm()
        assert transport._warming is not None
        await transport._warming
        await until_spoken(transport)
        assert not transport._is_warm()
        assert await ask(transport) == BODY


async def test_a_few_answers_before_the_answer_are_skipped_and_a_flood_is_not_read() -> None:
    def script(n_hints: int) -> Callable[[Exchange], object]:
        async def hint(exchange: Exchange) -> None:
            await exchange.raw(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * n_hints + ANSWERS["length"])

        return hint

    async with CompletionServer(script(3), script(10_000)) as server, connected(server.url) as transport:  # type: ignore[arg-type]  # scripts
        assert await ask(transport) == BODY
        with pytest.raises(StreamBrokenError):
            await ask(transport)
        assert len(server.requests) == 2


REFUSED = b"HTTP/1.1 413 Content Too Large\r\n"


@pytest.mark.parametrize(
    "said",
    [
        REFUSED + b"Content-Length: 0\r\n\r\n",
        REFUSED + b"Content-Length: 00\r\n\r\n",
        REFUSED + b"Connection: close\r\n\r\ntoo",
        REFUSED + b"Content-Length: 9\r\n\r\ntoo",
    ],
)
async def test_a_refusal_counts_though_the_request_was_not_read(said: bytes) -> None:
    keeps_open = b": 0\r" in said  # where its end can be told

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        await writer.drain()
        if not keeps_open:
            writer.close()

    async with listening(serve) as url, asking.engine(url, api="openai", remote={"retries": 0}) as engine:
        for _ in range(2):
            with pytest.raises(ContextOverflowError, match="413"):
                await asking.answer(engine, asking.fim("a" * 8_000_000))


async def test_a_connection_whose_request_was_not_sent_to_its_end_serves_no_other() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWERS["length"])

    connections: list[asyncio.StreamWriter] = []
    async with listening(serve) as url, connected(url) as transport:
        for number in (1, 2):
            assert await ask(transport, b"a" * 30_000_000) == BODY
            assert len(connections) == number


async def test_what_lay_ready_for_long_is_replaced_silently_when_the_server_has_closed_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def close_unread(exchange: Exchange) -> None:
        exchange.close()

    monkeypatch.setattr(http1, "IDLE_S", -1.0)  # for long, then
    async with CompletionServer(close_unread, reply("ok"), close_unread) as server, connected(server.url) as transport:
        transport.warm()
        assert transport._warming is not None
        await transport._warming
        assert b"ok" in await ask(transport)
        transport._connections[0].wire.abort()
        for n_requests in (4, 5, 6):  # one that breaks off whatever it is asked is not asked twice for ever
            with pytest.raises(StreamBrokenError):
                await ask(transport)
            assert len(server.requests) == n_requests
