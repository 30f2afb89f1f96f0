"""HTTP/2 by setting: many streams over one connection, and giving one up touches no other."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import h2.errors
import pytest

from monkeycode_lsp.engines.remote import address
from monkeycode_lsp.engines.remote.http import tls
from monkeycode_lsp.engines.remote.http.transport import Transport
from monkeycode_lsp.errors import EngineBusyError, EngineUnavailableError, StreamBrokenError
from tests import servers
from tests.certificates import Authority
from tests.http2_server import Asked, Http2Server, Script, hold, reply
from tests.unit.engines.remote import asking
from tests.unit.engines.remote.heartbeat import Heartbeat

CLOSED_WITHIN_S = 0.2
PATH = "/v1/completions"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made = Authority.make(tmp_path / "authority")
    if made is None:
        pytest.skip("there is no openssl here to make certificates with")
    return made


@pytest.fixture
async def connected(authority: Authority) -> AsyncIterator[object]:
    """A function that starts a server with these scripts and connects to it."""
    servers_: list[Http2Server] = []
    transports: list[Transport] = []

    async def start(*scripts: Script, max_streams: int = 100) -> tuple[Http2Server, Transport]:
        server = Http2Server(*scripts, tls=authority.issue("h2").context(), max_streams=max_streams)
        servers_.append(await server.__aenter__())
        transports.append(
            Transport(address.parse(server.url), {}, trust=tls.Trust((str(authority.ca_file),)), http2=True, environ={}),
        )
        return server, transports[-1]

    yield start
    for transport in transports:
        await transport.aclose()
    for server in servers_:
        await server.__aexit__()


async def ask(transport: Transport, body: bytes = b"{}") -> bytes:
    answer = await transport.send(PATH, body)
    try:
        return await answer.body()
    finally:
        await answer.aclose()


async def cancelled(task: asyncio.Task[bytes], n_cancels: int = 1) -> float:
    start = asyncio.get_running_loop().time()
    for _ in range(n_cancels):
        task.cancel()
        await asyncio.sleep(0)
    await asyncio.wait({task})
    assert task.cancelled()
    return start


async def one_event_then_nothing(asked: Asked) -> None:
    asked.head()
    await asked.send(b"data: a\n\n")
    await asked.hold()


async def test_requests_are_what_http_2_wants(connected) -> None:
    server, transport = await connected(reply(b"o", b"k"))
    assert await ask(transport, b'{"a": 1}') == b"ok"
    (asked,) = server.asked
    assert asked.body == b'{"a": 1}'
    assert asked.headers[":method"] == "POST"
    assert asked.headers[":path"] == PATH
    assert asked.headers[":authority"] == f"127.0.0.1:{server.port}"
    assert (await transport.send("/v1/models")).status == 200
    assert server.asked[1].headers[":method"] == "GET"


async def test_a_whole_completion_streams_through_the_engine(authority: Authority) -> None:
    async def script(asked: Asked) -> None:
        asked.head()
        for event in (servers.event(servers.choice("a")), servers.event(servers.choice("b", "stop")), servers.DONE):
            await asked.send(event)
        await asked.send(b"", end=True)

    async with Http2Server(script, tls=authority.issue("h2").context()) as server:
        how = {"remote": {"http2": True}, "ca_file": str(authority.ca_file), "api": "openai", "api_key": "K"}
        async with asking.engine(server.url, **how) as engine:
            for _ in range(3):
                assert await asking.answer(engine) == "ab"
        assert len(server.connections) == 1
        assert server.asked[0].headers["authorization"] == "Bearer K"


async def test_concurrent_streams_share_one_connection(connected) -> None:
    gate = asyncio.Event()

    async def script(asked: Asked) -> None:
        await gate.wait()
        await reply(asked.body)(asked)

    server, transport = await connected(script)
    tasks = [asyncio.create_task(ask(transport, b"%d" % number)) for number in range(20)]
    await server.stream(19)
    gate.set()
    assert await asyncio.gather(*tasks) == [b"%d" % number for number in range(20)]
    assert len(server.connections) == 1


@pytest.mark.parametrize("script", [hold, one_event_then_nothing])
@pytest.mark.parametrize("n_cancels", [1, 3])
async def test_a_cancel_resets_its_stream_and_no_other(connected, script: Script, n_cancels: int) -> None:
    done = asyncio.Event()

    async def slow(asked: Asked) -> None:
        asked.head()
        await asked.send(b"a")
        await done.wait()
        await asked.send(b"b", end=True)

    server, transport = await connected(slow, script, reply(b"again"))
    other = asyncio.create_task(ask(transport))
    await server.stream(0)
    task = asyncio.create_task(ask(transport))
    asked = await server.stream(1)
    await asyncio.sleep(0.02)  # lets the head and the first event arrive
    start = await cancelled(task, n_cancels)
    await asyncio.wait_for(asked.reset.wait(), 5)
    assert asked.reset_code == h2.errors.ErrorCodes.CANCEL
    assert asked.reset_at - start < CLOSED_WITHIN_S
    assert await ask(transport) == b"again"
    done.set()
    assert await other == b"ab"
    assert len(server.connections) == 1


async def test_two_hundred_cancels_leave_one_good_connection(connected) -> None:
    async def script(asked: Asked) -> None:
        asked.head()
        for _ in range(4):
            await asyncio.sleep(0.001)
            if asked.reset.is_set():
                return
            await asked.send(b"data: a\n\n")
        await asked.hold()

    chance = random.Random(7)  # noqa: S311 - no secret
    server, transport = await connected(script)
    for number in range(200):
        task = asyncio.create_task(ask(transport))
        await asyncio.sleep(chance.random() * 0.006)
        await cancelled(task, 1 + number % 3)
    server.scripts = (reply(b"ok"),)
    assert await ask(transport) == b"ok"
    for asked in server.asked[:-1]:
        await asyncio.wait_for(asked.reset.wait(), 5)
        assert asked.reset_code == h2.errors.ErrorCodes.CANCEL
    assert len(server.connections) == 1
    (session,) = transport._sessions
    assert session.idle
    assert session._h2.open_outbound_streams == 0


async def test_a_cancel_while_connecting_leaves_nothing(connected) -> None:
    server, transport = await connected(reply(b"ok"))
    for _ in range(20):
        task = asyncio.create_task(ask(transport))
        await asyncio.sleep(0.002)
        await cancelled(task, 2) if not task.done() else None
    assert await ask(transport) == b"ok"
    await transport.aclose()
    for connection in server.connections:
        await asyncio.wait_for(connection.lost.wait(), 5)


async def test_a_server_that_says_goodbye_finishes_what_it_began_and_is_asked_anew(connected) -> None:
    gate = asyncio.Event()

    async def slow(asked: Asked) -> None:
        asked.head()
        await asked.send(b"a")
        await gate.wait()
        await asked.send(b"b", end=True)

    server, transport = await connected(slow, hold, reply(b"new"))
    begun = asyncio.create_task(ask(transport))
    first = await server.stream(0)
    not_begun = asyncio.create_task(ask(transport))
    await server.stream(1)
    first.connection.go_away(last=first.number)
    assert await not_begun == b"new"  # the one silent retry
    gate.set()
    assert await begun == b"ab"
    assert [asked.connection is first.connection for asked in server.asked] == [True, True, False]
    await asyncio.wait_for(first.connection.lost.wait(), 5)


async def test_a_server_that_restarts_costs_one_silent_retry(connected) -> None:
    server, transport = await connected(reply(b"ok"), hold, reply(b"again"), reply(b"and again"))
    assert await ask(transport) == b"ok"
    waiting = asyncio.create_task(ask(transport))
    await server.stream(1)
    server.connections[0].transport.abort()
    assert await waiting == b"again"
    server.connections[1].transport.abort()
    await server.connections[1].lost.wait()
    assert await ask(transport) == b"and again"


async def test_a_stream_that_is_cut_in_the_middle_is_broken_and_not_asked_again(connected) -> None:
    server, transport = await connected(one_event_then_nothing)
    task = asyncio.create_task(ask(transport))
    await server.stream(0)
    await asyncio.sleep(0.02)
    server.connections[0].transport.abort()
    with pytest.raises(StreamBrokenError):
        await task
    assert len(server.asked) == 1


async def test_a_refused_stream_is_tried_once_more(connected) -> None:
    async def refuse(asked: Asked) -> None:
        asked.refuse(h2.errors.ErrorCodes.REFUSED_STREAM)

    _, transport = await connected(refuse, reply(b"ok"), refuse)
    assert await ask(transport) == b"ok"
    with pytest.raises(StreamBrokenError):
        await ask(transport)


async def test_a_stream_that_the_server_began_and_gave_up_is_not_tried_again(connected) -> None:
    async def give_up(asked: Asked) -> None:
        asked.refuse(h2.errors.ErrorCodes.INTERNAL_ERROR)

    server, transport = await connected(give_up, reply(b"ok"))
    with pytest.raises(StreamBrokenError):
        await ask(transport)
    assert len(server.asked) == 1
    assert await ask(transport) == b"ok"


async def test_more_streams_than_the_server_takes_get_another_connection(connected) -> None:
    gate = asyncio.Event()

    async def script(asked: Asked) -> None:
        await gate.wait()
        await reply(b"ok")(asked)

    server, transport = await connected(reply(b"first"), script, max_streams=2)
    assert await ask(transport) == b"first"  # from here on the limit is known
    tasks = [asyncio.create_task(ask(transport)) for _ in range(5)]
    await server.stream(5)
    gate.set()
    assert await asyncio.gather(*tasks) == [b"ok"] * 5
    assert len(server.connections) == 3


async def test_bodies_larger_than_every_window_go_both_ways(connected) -> None:
    async def echo(asked: Asked) -> None:
        asked.head()
        await asked.send(asked.body, end=True)

    _, transport = await connected(echo)
    body = bytes(range(256)) * 4_000
    assert await ask(transport, body) == body


async def test_an_answer_that_nobody_reads_does_not_stop_the_others(connected) -> None:
    async def much(asked: Asked) -> None:
        asked.head()
        await asked.send(b"x" * 4_000_000, end=True)

    server, transport = await connected(much, reply(b"ok"))
    unread = await transport.send(PATH, b"{}")
    assert await ask(transport) == b"ok"
    await unread.aclose()
    assert await ask(transport) == b"ok"
    assert len(server.connections) == 1


async def test_an_answer_before_the_end_of_the_request_is_taken(connected) -> None:
    server, transport = await connected(hold)

    def early(connection, number) -> None:
        connection.h2.send_headers(number, [(":status", "413")], end_stream=True)
        connection.flush()

    task = asyncio.create_task(transport.send(PATH, b"x" * 4_000_000))
    async with server.arrived:
        await server.arrived.wait_for(lambda: server.asked)
    early(server.connections[0], server.asked[0].number)
    answer = await task
    assert answer.status == 413
    await answer.aclose()


async def test_a_connection_that_went_silent_is_not_asked_again(connected, monkeypatch) -> None:
    from monkeycode_lsp.engines.remote.http import http2  # noqa: PLC0415 - as late as the product does

    monkeypatch.setattr(http2, "QUIET_S", 0.0)
    server, transport = await connected(hold, reply(b"ok"), hold, reply(b"ok"))
    task = asyncio.create_task(ask(transport))
    asked = await server.stream(0)
    await asyncio.sleep(0.02)
    asked.connection.mute = True
    await cancelled(task)
    assert await ask(transport) == b"ok"
    assert len(server.connections) == 2
    task = asyncio.create_task(ask(transport))
    await server.stream(2)
    await asyncio.sleep(0.02)
    await cancelled(task)
    await asyncio.wait_for(server.asked[2].reset.wait(), 5)
    await asyncio.sleep(0.02)  # lets the answer to the question whether it lives arrive
    assert server.connections[1].pings == 1
    assert await ask(transport) == b"ok"
    assert len(server.connections) == 2


@pytest.mark.parametrize("garbage", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\xff" * 200, b"\0\0\x05\x01\x05\0\0\0\x01hello", b""])
async def test_garbage_breaks_the_answer_and_nothing_else(connected, garbage: bytes) -> None:
    async def script(asked: Asked) -> None:
        asked.connection.transport.write(garbage)
        asked.connection.transport.close()

    _, transport = await connected(script, reply(b"ok"))
    with pytest.raises(StreamBrokenError, match=r"off\.$"):  # no word of certificates: it has spoken, and this way
        await ask(transport)
    assert await ask(transport) == b"ok"


async def test_a_server_without_it_is_spoken_to_as_before(authority: Authority) -> None:
    async with servers.CompletionServer(servers.reply("ok"), tls=authority.server) as server:
        how = {"remote": {"http2": True}, "ca_file": str(authority.ca_file), "api": "openai"}
        async with asking.engine(server.url, **how) as engine:
            for _ in range(3):
                assert await asking.answer(engine) == "ok"
                await asyncio.sleep(0.02)
            assert server.n_connections == 1
    how = {"remote": {"http2": True}, "api": "openai"}
    async with servers.CompletionServer(servers.reply("ok")) as server, asking.engine(server.url, **how) as engine:
        assert await asking.answer(engine) == "ok"


async def test_closing_the_transport_ends_its_streams(connected) -> None:
    server, transport = await connected(one_event_then_nothing)
    answer = await transport.send(PATH, b"{}")
    async with aclosing(answer.pieces()) as pieces:
        assert await anext(pieces) == b"data: a\n\n"
        await transport.aclose()
        with pytest.raises(StreamBrokenError):
            await anext(pieces)
    await asyncio.wait_for(server.connections[0].lost.wait(), 5)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h2", None)
    with pytest.raises(EngineUnavailableError, match="pip install h2"):
        Transport(address.parse("https://h"), {}, http2=True, environ={})


async def test_a_server_that_takes_no_stream_is_said_to_be_busy_and_not_connected_to_again_and_again(connected) -> None:
    server, transport = await connected(reply(b"ok"), max_streams=0)
    for _ in range(3):
        with pytest.raises(EngineBusyError, match=r"remote\.http2"):
            await ask(transport)
    assert len(server.connections) == 1


FLOODS = {
    "settings": b"\0\0\0\x04\0\0\0\0\0",
    "pings": b"\0\0\x08\x06\0\0\0\0\x0012345678",
    "priorities": b"\0\0\x05\x02\0\0\0\0\x01\0\0\0\0\x01",
    "windows": b"\0\0\x04\x08\0\0\0\0\0\0\0\0\x01",
    "empty data": b"\0\0\0\0\0\0\0\0\x01",
}


@pytest.mark.parametrize("kind", FLOODS)
async def test_a_flood_of_frames_that_bring_nothing_keeps_nobody_waiting_and_has_an_end(connected, kind: str) -> None:
    async def script(asked: Asked) -> None:
        asked.head()
        await asked.send(b"a")
        asked.connection.transport.write(FLOODS[kind] * 60_000)
        await asked.hold()

    _, transport = await connected(script, reply(b"ok"))
    async with Heartbeat() as heart:
        with pytest.raises(StreamBrokenError):
            await asyncio.wait_for(ask(transport), 15)
    assert heart.longest_s < 0.25
    assert await ask(transport) == b"ok"
