"""One endpoint over time: its connection, its limits in the middle of an answer, and what it has learned."""

from __future__ import annotations

import asyncio

import pytest

from monkeycode_lsp import config
from monkeycode_lsp.engines.remote.engine import RemoteEngine
from monkeycode_lsp.errors import ContextOverflowError, StreamBrokenError
from tests.fakes import vllm
from tests.servers import CompletionServer, Exchange, reply, status
from tests.unit.engines.remote import asking

PATIENT = {"timeout_ms": 60_000, "stall_ms": 60_000, "retries": 0}


async def test_getting_ready_opens_anew_what_the_server_has_closed_and_asks_nothing() -> None:
    async with vllm.server() as server, asking.engine(server.url, model="") as engine:
        model = await engine.ready()
        n_asked = len(server.others)
        for _ in range(2):
            n_connections = server.n_connections
            server.drop_idle()
            async with asyncio.timeout(10):
                while server.n_connections == n_connections:  # the client hears of the end a moment later
                    assert await engine.ready() == model
                    await asyncio.sleep(0.001)
        assert (len(server.others), server.requests) == (n_asked, [])
        assert await asking.answer(engine) == "a + b"


async def test_a_stall_in_the_middle_is_given_up_long_before_a_first_token_would_be() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.text("a")
        await exchange.hold()

    async with CompletionServer(script) as server, asking.engine(server.url, remote={**PATIENT, "stall_ms": 50}) as engine:
        async with asyncio.timeout(20):
            with pytest.raises(StreamBrokenError, match=r"remote\.stallMs"):
                await asking.answer(engine)
            await server.requests[0].closed.wait()


async def test_a_whole_answer_is_there_within_a_moment_though_the_server_keeps_its_stream_open() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.text("ok", "stop")
        await exchange.hold()

    async with CompletionServer(script) as server, asking.engine(server.url, remote=PATIENT) as engine:
        took: list[float] = []
        while not took or (took[-1] > 1 and len(took) < 5):  # on a busy machine one may be late, but not all
            began = asyncio.get_running_loop().time()
            async with asyncio.timeout(20):
                assert await asking.answer(engine) == "ok"
            took.append(asyncio.get_running_loop().time() - began)
        assert min(took) < 1


async def test_a_window_that_is_known_is_not_forgotten_by_an_overflow_without_a_number() -> None:
    told = status(400, {"message": "This model's maximum context length is 2048 tokens."})
    untold = status(400, {"message": "The prompt exceeds the context length."})
    async with CompletionServer(told, untold, untold, reply("ok")) as server, asking.engine(server.url) as engine:
        for limit in (2048, None, None):
            with pytest.raises(ContextOverflowError) as caught:
                await asking.answer(engine)
            assert caught.value.limit_tokens == limit
            assert (await engine.ready()).context_tokens == 2048
        assert await asking.answer(engine) == "ok"
        assert (await engine.ready()).context_tokens == 2048


async def test_connections_to_all_of_a_pool_lie_ready_before_the_next_ask() -> None:
    async with vllm.server() as one, vllm.server() as other:
        remote = config.Remote(endpoints=(config.Endpoint(url=one.url), config.Endpoint(url=other.url)))
        engine = RemoteEngine(settings=remote, notify=lambda _: None, environ={})
        try:
            async with asyncio.timeout(10):
                while not (one.others and other.others):
                    await engine.ready()
                    await asyncio.sleep(0.001)
                for server in (one, other):
                    n_connections = server.n_connections
                    server.drop_idle()
                    while server.n_connections == n_connections:
                        await engine.ready()
                        await asyncio.sleep(0.001)
        finally:
            await engine.aclose()
