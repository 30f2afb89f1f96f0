"""DNS, TCP and TLS are paid for before the first keystroke, and again when the server has closed what was kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from monkeycode_lsp.engines.remote import address
from monkeycode_lsp.engines.remote.http import tls
from monkeycode_lsp.engines.remote.http.transport import Transport
from tests.certificates import Authority
from tests.http2_server import Http2Server
from tests.http2_server import reply as http2_reply
from tests.proxies import Proxy
from tests.servers import BlackHole, CompletionServer, Exchange, reply, unused_port

Connect = Callable[..., Transport]


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Makes transports and closes them."""
    made: list[Transport] = []

    def make(url: str, **how: object) -> Transport:
        made.append(Transport(address.parse(url), {}, **{"environ": {}, **how}))  # type: ignore[arg-type]  # cases
        return made[-1]

    yield make
    for transport in made:
        await transport.aclose()


async def ask(transport: Transport) -> None:
    answer = await transport.send("/v1/completions", b"{}")
    assert b"ok" in await answer.body()
    await answer.aclose()


async def until_dropped(server: CompletionServer, transport: Transport) -> None:
    """The server closes what is idle, as soon as it is."""
    async with asyncio.timeout(5):
        while transport._is_warm():
            server.drop_idle()
            await asyncio.sleep(0.001)


async def warmed(transport: Transport) -> None:
    transport.warm()
    if transport._warming is not None:
        await transport._warming


async def test_the_first_request_finds_a_connection(connect: Connect) -> None:
    async with CompletionServer(reply("ok")) as server:
        transport = connect(server.url)
        await warmed(transport)
        assert server.n_connections == 1
        assert not server.requests
        assert not server.others  # nothing was asked
        await ask(transport)
        assert server.n_connections == 1


async def test_being_warm_costs_nothing_more(connect: Connect) -> None:
    async with CompletionServer(reply("ok")) as server:
        transport = connect(server.url)
        for _ in range(3):
            transport.warm()  # one at a time, and at once
        for _ in range(3):
            await warmed(transport)
        assert server.n_connections == 1
        await ask(transport)
        for _ in range(3):
            await warmed(transport)
        assert server.n_connections == 1


async def test_a_connection_that_the_server_has_closed_is_opened_anew(connect: Connect) -> None:
    async with CompletionServer(reply("ok")) as server:
        transport = connect(server.url)
        for n_connections in (1, 2, 3):
            await warmed(transport)
            assert server.n_connections == n_connections
            if n_connections == 2:
                await ask(transport)  # a connection that has served, too
            await until_dropped(server, transport)
        await ask(transport)


async def test_while_all_connections_are_at_work_another_is_opened(connect: Connect) -> None:
    async with CompletionServer(reply("ok")) as server:
        transport = connect(server.url)
        answer = await transport.send("/v1/completions", b"{}")
        await warmed(transport)
        assert server.n_connections == 2
        await answer.aclose()


async def test_tls_is_paid_for_too(connect: Connect, tmp_path: Path) -> None:
    authority = Authority.make(tmp_path / "authority")
    if authority is None:
        pytest.skip("there is no openssl here to make certificates with")
    trust = tls.Trust((str(authority.ca_file),))
    async with CompletionServer(reply("ok"), tls=authority.server) as server:
        transport = connect(server.url, trust=trust)
        await warmed(transport)
        assert server.n_connections == 1  # which the server counts when the handshake is over
        await ask(transport)
        assert server.n_connections == 1
    context = authority.issue("models", names="DNS:models.example").context()
    async with Http2Server(http2_reply(b"ok"), tls=context) as http2_server, Proxy(http2_server.port) as via:
        transport = connect("https://models.example", trust=trust, http2=True, environ={"HTTPS_PROXY": via.url})
        for _ in range(2):
            await warmed(transport)
        await ask(transport)
        assert len(http2_server.connections) == len(via.asked) == 1


@pytest.mark.parametrize("url", ["http://127.0.0.1:{port}", "https://127.0.0.1:{port}", "http://no-such-name.invalid"])
async def test_failures_are_for_the_request_that_follows(connect: Connect, url: str) -> None:
    transport = connect(url.format(port=unused_port()))
    await warmed(transport)
    assert transport._warming is not None
    assert transport._warming.exception() is None
    assert not transport._is_warm()


async def test_closing_does_not_wait_for_it(connect: Connect) -> None:
    with BlackHole() as url:
        transport = connect(url)
        transport.warm()
        await asyncio.sleep(0)
        closing: Awaitable[None] = transport.aclose()
        await asyncio.wait_for(closing, 1)


async def test_a_silent_retry_takes_no_other_connection_that_was_kept(connect: Connect) -> None:
    async def script(exchange: Exchange) -> None:
        if exchange.request.connection < 3 and len(server.requests) > 3:
            exchange.close()  # it was about to do so, with every connection of that age
        else:
            await reply("ok")(exchange)

    async with CompletionServer(script) as server:
        transport = connect(server.url)
        answers = [await transport.send("/v1/completions", b"{}") for _ in range(3)]
        for answer in answers:
            await answer.body()
            await answer.aclose()
        assert len(transport._connections) == 3
        await ask(transport)
        assert [request.connection for request in server.requests] == [0, 1, 2, 0, 3]
