"""What the sender is made to wait for, and what is given back to it: memory stays bounded, and nothing stands still."""

from __future__ import annotations

import asyncio
import gzip
from pathlib import Path

import pytest

from monkeycode_lsp.engines.remote import address
from monkeycode_lsp.engines.remote.http import tls
from monkeycode_lsp.engines.remote.http.transport import Transport
from monkeycode_lsp.engines.remote.http.wires import Wire
from monkeycode_lsp.errors import StreamBrokenError
from tests.certificates import Authority
from tests.http2_server import Asked, Http2Server
from tests.servers import CompletionServer, Exchange

PATH = "/v1/completions"
_MUCH = 4_000_000


async def test_a_fast_sender_waits_for_a_slow_reader_and_nothing_is_lost() -> None:
    n_bytes, sent = 30_000_000, asyncio.Event()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for start in range(0, n_bytes, 100_000):
            writer.write(bytes([start // 100_000 % 251]) * 100_000)
            await writer.drain()
        sent.set()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    wire = Wire()
    await asyncio.get_running_loop().create_connection(lambda: wire, *server.sockets[0].getsockname())
    most, n_read = 0, 0
    async with asyncio.timeout(30):
        assert await wire.read(1)  # it has begun
        n_read += 1
        for _ in range(200):  # turns of the loop in which nobody reads
            await asyncio.sleep(0.001)
            most = max(most, len(wire._buffer))
        assert not sent.is_set()
        while data := await wire.read(65_536):
            assert set(data[:1]) == {n_read // 100_000 % 251}
            n_read += len(data)
            most = max(most, len(wire._buffer))
    assert n_read == n_bytes
    assert most < _MUCH
    wire.abort()
    server.close()


async def test_a_compressed_body_that_is_cut_off_is_broken() -> None:
    body = gzip.compress(b"data: {}\n\n" * 100)[:-4]

    async def script(exchange: Exchange) -> None:
        await exchange.respond(200, body, content_encoding="gzip")

    async with CompletionServer(script) as server:
        transport = Transport(address.parse(server.url), {}, environ={})
        answer = await transport.send(PATH, b"{}")
        with pytest.raises(StreamBrokenError, match="cut off"):
            await answer.body()
        await answer.aclose()
        await transport.aclose()


async def test_what_dropped_streams_left_unread_is_given_back_to_the_server(tmp_path: Path) -> None:
    authority = Authority.make(tmp_path / "authority")
    if authority is None:
        pytest.skip("there is no openssl here to make certificates with")
    n_dropped, size, whole = 24, 900_000, asyncio.Event()

    async def script(asked: Asked) -> None:
        asked.head()
        if len(server.asked) > n_dropped:
            await asked.send(b"x" * size, end=True)
            return
        await asked.send(b"x" * size)
        whole.set()
        await asked.hold()

    server = Http2Server(script, tls=authority.issue("h2").context())
    async with server, asyncio.timeout(30):
        transport = Transport(address.parse(server.url), {}, trust=tls.Trust((str(authority.ca_file),)), http2=True, environ={})
        for _ in range(n_dropped):
            whole.clear()
            answer = await transport.send(PATH, b"{}")
            await whole.wait()
            while sum(n_counted for _, n_counted in answer._response.data) < size:  # noqa: ASYNC110 - nobody may read it, so nobody is told
                await asyncio.sleep(0)
            await answer.aclose()
        answer = await transport.send(PATH, b"{}")
        assert await answer.body() == b"x" * size
        await answer.aclose()
        assert len(server.connections) == 1
        await transport.aclose()
