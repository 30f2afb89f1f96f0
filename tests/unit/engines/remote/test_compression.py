"""Compressed bodies: each event comes through when it is flushed, and what is cut off or garbage never passes as whole."""

from __future__ import annotations

import asyncio
import gzip
import sys
import zlib
from collections.abc import Callable
from contextlib import aclosing

import pytest

from monkeycode_lsp.engines.remote import address
from monkeycode_lsp.engines.remote.http.reply import MAX_BODY_BYTES
from monkeycode_lsp.engines.remote.http.transport import Transport
from monkeycode_lsp.engines.remote.http.unpacking import Unpacking
from monkeycode_lsp.errors import EngineUnavailableError, StreamBrokenError
from tests.servers import DONE, CompletionServer, Exchange, choice, event
from tests.unit.engines.remote import asking
from tests.unit.engines.remote.heartbeat import Heartbeat

brotli = pytest.importorskip("brotli")
zstandard = pytest.importorskip("zstandard")


class _Brotli:
    def __init__(self) -> None:
        self._library = brotli.Compressor()

    def compress(self, data: bytes) -> bytes:
        return self._library.process(data)

    def flush(self, mode: int | None = None) -> bytes:
        return self._library.finish() if mode is None else self._library.flush()


def _zstd() -> object:
    return zstandard.ZstdCompressor().compressobj()


def _zlib(wbits: int) -> Callable[[], object]:
    return lambda: zlib.compressobj(wbits=wbits)


CODINGS = {
    "gzip": (_zlib(31), zlib.Z_SYNC_FLUSH),
    "x-gzip": (_zlib(31), zlib.Z_SYNC_FLUSH),
    "deflate": (_zlib(15), zlib.Z_SYNC_FLUSH),
    " Deflate ": (_zlib(-15), zlib.Z_SYNC_FLUSH),
    "br": (_Brotli, 1),
    "zstd": (_zstd, zstandard.COMPRESSOBJ_FLUSH_BLOCK),
}
coding = pytest.mark.parametrize("name", CODINGS)


def packed(name: str, data: bytes) -> bytes:
    compressor = CODINGS[name][0]()
    return compressor.compress(data) + compressor.flush()


def unpacked(name: str, *pieces: bytes) -> bytes:
    unpacking = Unpacking("http://h", name)
    body = b"".join(out for piece in pieces for out in unpacking.feed(piece))
    unpacking.end()
    return body


@coding
async def test_each_flushed_event_comes_through_at_once(name: str) -> None:
    make, flush = CODINGS[name]

    async def script(exchange: Exchange) -> None:
        compressor = make()
        await exchange.head(content_encoding=name.strip())
        for text in ("a", "b"):
            await exchange.send(compressor.compress(event(choice(text))) + compressor.flush(flush))
        await exchange.hold()
        await exchange.send(compressor.compress(event(choice("c", "stop")) + DONE) + compressor.flush())
        await exchange.end()

    async with (
        CompletionServer(script) as server,
        asking.engine(server.url, api="openai") as engine,
        aclosing(engine.stream(asking.fim())) as stream,
    ):
        async with asyncio.timeout(5):
            assert [(await anext(stream)).text for _ in range(2)] == ["a", "b"]
        server.release()
        assert "".join([chunk.text async for chunk in stream]) == "c"


@coding
def test_bytes_may_come_one_by_one_or_in_several_members(name: str) -> None:
    data = bytes(range(256)) * 40
    whole = packed(name, data)
    assert unpacked(name, whole) == data
    assert unpacked(name, *(whole[at : at + 1] for at in range(len(whole)))) == data
    assert unpacked(name, b"", whole[:7], b"", whole[7:]) == data
    if "gzip" in name or name == "zstd":
        assert unpacked(name, whole + whole) == data * 2
        assert unpacked(name, whole, whole) == data * 2


@coding
def test_what_is_cut_off_or_garbage_is_broken(name: str) -> None:
    whole = packed(name, b"hello " * 400)
    for end in range(1, len(whole)):
        with pytest.raises(StreamBrokenError, match=r"cut off|cannot be unpacked"):
            unpacked(name, whole[:end])
    for garbage in (b"data: {}\n\n", b"\xff" * 90, b"<html>" * 9):
        with pytest.raises(StreamBrokenError, match=r"cut off|cannot be unpacked"):
            unpacked(name, garbage)


def test_an_empty_body_has_no_beginning_and_no_end() -> None:
    for name in CODINGS:
        assert unpacked(name) == b""


def test_several_codings_are_undone_in_turn() -> None:
    assert unpacked("gzip, identity, br", packed("br", packed("gzip", b"data"))) == b"data"
    assert unpacked("", b"data") == unpacked("identity", b"data") == b"data"


@coding
async def test_a_body_that_swells_is_read_no_further_than_we_hold(name: str) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.respond(200, packed(name, b"\0" * 30_000_000), content_encoding=name.strip())

    async with CompletionServer(script) as server:
        transport = Transport(address.parse(server.url), {}, environ={})
        answer = await transport.send("/v1/completions", b"{}")
        assert MAX_BODY_BYTES < len(await answer.body()) < 12 * MAX_BODY_BYTES
        await answer.aclose()
        await transport.aclose()


BOMBS = {
    "comments": b": hi\n\n" * 7_000_000,
    "blank lines": b"\n" * 50_000_000,
    "no choices": b'data: {"choices":[]}\n\n' * 1_000_000,
    "nothing": b"data: null\n\n" * 2_000_000,
}


@pytest.mark.parametrize("kind", BOMBS)
async def test_a_stream_that_swells_keeps_nobody_waiting(kind: str) -> None:
    bomb = gzip.compress(BOMBS[kind])

    async def script(exchange: Exchange) -> None:
        await exchange.respond(200, bomb, "text/event-stream", content_encoding="gzip")

    async with (
        CompletionServer(script) as server,
        asking.engine(server.url, api="openai", remote={"retries": 0}) as engine,
        Heartbeat() as heart,
    ):
        with pytest.raises(StreamBrokenError, match="says nothing"):
            await asyncio.wait_for(asking.answer(engine), 15)
    assert heart.longest_s < 0.25


async def test_what_unpacks_to_nothing_again_and_again_ends_with_the_patience() -> None:
    bomb = gzip.compress(gzip.compress(b"") * 2_000_000)

    async def script(exchange: Exchange) -> None:
        await exchange.head(content_encoding="gzip, gzip", length=len(bomb))
        await exchange.raw(bomb)

    settings = {"retries": 0, "timeout_ms": 300}
    async with CompletionServer(script) as server, asking.engine(server.url, api="openai", remote=settings) as engine:
        async with Heartbeat() as heart:
            with pytest.raises(EngineUnavailableError, match="did not begin"):
                await asyncio.wait_for(asking.answer(engine), 15)
        assert heart.longest_s < 0.25


async def test_a_coding_may_stand_in_several_headers() -> None:
    body = gzip.compress(gzip.compress(event(choice("ok", "stop")) + DONE))

    async def script(exchange: Exchange) -> None:
        twice = b"Content-Encoding: gzip\r\n" * 2
        await exchange.raw(b"HTTP/1.1 200 OK\r\n" + twice + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    async with CompletionServer(script) as server, asking.engine(server.url, api="openai") as engine:
        assert await asking.answer(engine) == "ok"


async def test_a_compressed_refusal_is_understood() -> None:
    async def script(exchange: Exchange) -> None:
        body = b'{"error": {"message": "This model\'s maximum context length is 4096 tokens"}}'
        await exchange.respond(400, gzip.compress(body), content_encoding="gzip")

    async with CompletionServer(script) as server, asking.engine(server.url, api="openai") as engine:
        with pytest.raises(Exception, match="4096"):
            await asking.answer(engine)


async def test_a_stream_that_is_not_what_it_says_is_broken_in_the_users_words() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.head(content_encoding="gzip")
        await exchange.text("plain")
        await exchange.hold()

    async with CompletionServer(script) as server, asking.engine(server.url, api="openai") as engine:
        with pytest.raises(StreamBrokenError, match="compressed answer"):
            await asking.answer(engine)
        await asyncio.wait_for(server.requests[0].closed.wait(), 5)


@pytest.mark.parametrize(("name", "package"), [("br", "brotli"), ("zstd", "zstandard")])
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, name: str, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(EngineUnavailableError, match=f"pip install {package}"):
        Unpacking("http://h", name)


def test_an_unknown_coding_is_said() -> None:
    with pytest.raises(StreamBrokenError, match="do not know"):
        Unpacking("http://h", "compress")
