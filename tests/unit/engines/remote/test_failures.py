"""Cases of kinds H and M: cancel, and servers that are down, refusing or slow."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing, suppress

import pytest

from monkeycode_lsp.engines.remote.engine import RemoteEngine
from monkeycode_lsp.engines.remote.stream import relay
from monkeycode_lsp.errors import EngineBusyError, EngineError, EngineUnavailableError, StreamBrokenError
from tests.servers import BlackHole, CompletionServer, Exchange, hold, reply, status, unused_port
from tests.unit.engines.remote import asking

CLOSED_WITHIN_S = 0.2


async def one_text_then_nothing(exchange: Exchange) -> None:
    await exchange.head()
    await exchange.text("a")
    await exchange.hold()


async def head_then_nothing(exchange: Exchange) -> None:
    await exchange.head()
    await exchange.hold()


async def document_then_nothing(exchange: Exchange) -> None:
    await exchange.head(content_type="application/json", length=900)
    await exchange.send(b'{"choices": [')
    await exchange.hold()


@pytest.mark.parametrize("script", [hold, head_then_nothing, one_text_then_nothing, document_then_nothing])
@pytest.mark.parametrize("n_cancels", [1, 3])
async def test_a_cancel_closes_the_socket_in_every_phase_however_often_it_comes(script: object, n_cancels: int) -> None:
    async with CompletionServer(script, reply("ok")) as server, asking.engine(server.url) as engine:  # type: ignore[arg-type]  # a script
        task = asyncio.create_task(asking.answer(engine))
        request = await server.request(0)
        if script is not hold:
            await asyncio.sleep(0.02)  # lets the head and the first text arrive
        cancelled_at = asyncio.get_running_loop().time()
        for _ in range(n_cancels):
            task.cancel()
            await asyncio.sleep(0)
        await asyncio.wait({task})
        assert task.cancelled()
        await asyncio.wait_for(request.closed.wait(), 5)
        assert request.closed_at is not None
        assert request.closed_at - cancelled_at < CLOSED_WITHIN_S
        assert await asking.answer(engine) == "ok"


async def test_closing_the_stream_returns_when_the_socket_is_closed() -> None:
    async with CompletionServer(one_text_then_nothing) as server, asking.engine(server.url) as engine:
        async with aclosing(engine.stream(asking.fim())) as stream:
            assert (await anext(stream)).text == "a"
        request = await server.request(0)
        await asyncio.wait_for(request.closed.wait(), CLOSED_WITHIN_S)


async def test_a_cancel_while_connecting_is_quick() -> None:
    with BlackHole() as url:
        async with asking.engine(url, api="openai") as engine:
            await engine.ready()
            task = asyncio.create_task(asking.answer(engine))
            await asyncio.sleep(0.1)
            start = time.perf_counter()
            task.cancel()
            await asyncio.wait({task})
            assert time.perf_counter() - start < CLOSED_WITHIN_S


async def test_many_cancels_leave_nothing_behind() -> None:
    async with CompletionServer(one_text_then_nothing) as server, asking.engine(server.url) as engine:
        for number in range(40):
            task = asyncio.create_task(asking.answer(engine))
            request = await server.request(number)
            for _ in range(1 + number % 3):
                task.cancel()
                await asyncio.sleep(0)
            await asyncio.wait({task})
            await asyncio.wait_for(request.closed.wait(), 5)
        (member,) = engine.members
        assert member.server._transport is not None
        assert not member.server._relay._tasks
        assert all(kept.wire.over for kept in member.server._transport._connections)


async def test_a_connection_is_used_again_after_a_whole_answer() -> None:
    async with CompletionServer(reply("ok")) as server, asking.engine(server.url, api="openai") as engine:
        for _ in range(3):
            assert await asking.answer(engine) == "ok"
            await asyncio.sleep(0.02)  # lets the last piece of the body arrive
        assert server.n_connections == 1


async def test_a_kept_connection_that_the_server_has_closed_costs_one_silent_retry() -> None:
    async def close_unread(exchange: Exchange) -> None:
        exchange.close()

    async with CompletionServer(reply("ok"), close_unread, reply("again")) as server, asking.engine(server.url) as engine:
        assert await asking.answer(engine) == "ok"
        assert await asking.answer(engine) == "again"
        server.drop_idle()
        assert await asking.answer(engine) == "again"


@pytest.mark.parametrize("fate", ["fin", "rst"])
async def test_a_connection_cut_at_once_costs_its_own_request_at_most(fate: str) -> None:
    async with CompletionServer(first_connections=[fate]) as server, asking.engine(server.url, api="openai") as engine:
        with suppress(StreamBrokenError):  # unless it was cut before anything could be sent
            await asking.answer(engine)
        assert await asking.answer(engine) == "ok"


async def test_a_server_that_reads_and_breaks_off_gets_every_ask_once() -> None:
    async def close(exchange: Exchange) -> None:
        exchange.close()

    async with CompletionServer(close) as server, asking.engine(server.url, api="openai", remote={"retries": 0}) as engine:
        for number in range(1, 4):
            await engine.ready()  # lays a connection ready, as before every keystroke
            with pytest.raises(StreamBrokenError):
                await asking.answer(engine)
            assert len(server.requests) == number


async def head_then_fin(exchange: Exchange) -> None:
    await exchange.head()
    exchange.close()


async def head_then_fin_without_length(exchange: Exchange) -> None:
    await exchange.head(chunked=False)
    exchange.close()


async def head_then_half_close(exchange: Exchange) -> None:
    await exchange.head(chunked=False)
    exchange.half_close()
    await exchange.hold()


async def text_then_reset(exchange: Exchange) -> None:
    await exchange.head()
    await exchange.text("a")
    exchange.reset()


async def text_then_cut_chunk(exchange: Exchange) -> None:
    await exchange.head()
    await exchange.raw(b"ff\r\ndata: {")
    exchange.close()


async def not_http(exchange: Exchange) -> None:
    await exchange.raw(b"SSH-2.0-x\r\n")
    exchange.close()


@pytest.mark.parametrize(
    "script", [head_then_fin, head_then_fin_without_length, head_then_half_close, text_then_reset, text_then_cut_chunk, not_http]
)
async def test_half_open_connections_break_the_answer_and_nothing_else(script: object) -> None:
    async with CompletionServer(script, script, reply("ok")) as server, asking.engine(server.url) as engine:  # type: ignore[arg-type]  # a script
        for _ in range(2):
            try:
                text = await asking.answer(engine)
            except StreamBrokenError:
                continue
            assert text == "ok"  # the silent retry of `not_http` reached the good answer
        assert await asking.answer(engine) == "ok"


async def test_a_finish_reason_counts_even_if_the_connection_is_then_cut() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.text("ok", "stop")
        exchange.reset()

    async with CompletionServer(script) as server, asking.engine(server.url) as engine:
        assert await asking.answer(engine) == "ok"


async def expect_failure(engine: RemoteEngine) -> EngineError:
    with pytest.raises(EngineError) as caught:
        await asking.answer(engine)
    return caught.value


async def test_a_dead_port_is_quick_and_used_again_soon_after_it_lives() -> None:
    port = unused_port()
    async with asking.engine(f"http://127.0.0.1:{port}") as engine:
        for _ in range(20):
            start = time.perf_counter()
            error = await expect_failure(engine)
            assert time.perf_counter() - start < 0.5
            assert isinstance(error, EngineUnavailableError)
            assert f"127.0.0.1:{port}" in str(error)
        async with CompletionServer(port=port):
            assert await eventually(engine, within_s=2) == "ok"


async def eventually(engine: RemoteEngine, *, within_s: float) -> str:
    end = time.monotonic() + within_s
    while True:
        try:
            return await asking.answer(engine)
        except EngineError:
            assert time.monotonic() < end
            await asyncio.sleep(0.05)


async def test_a_loading_server_is_asked_quietly_and_used_within_two_seconds() -> None:
    loading = True

    async def script(exchange: Exchange) -> None:
        await (status(503, {"error": {"message": "Loading model"}}) if loading else reply("ok"))(exchange)

    async with CompletionServer(script) as server, asking.engine(server.url) as engine:
        for _ in range(50):
            assert isinstance(await expect_failure(engine), EngineBusyError)
        assert len(server.requests) <= 3
        loading = False
        assert await eventually(engine, within_s=2) == "ok"


async def test_a_refused_key_is_not_tried_at_every_key_press() -> None:
    async with CompletionServer(status(401)) as server, asking.engine(server.url) as engine:
        for _ in range(20):
            await expect_failure(engine)
        assert len(server.requests) <= 3


async def test_the_same_holds_while_the_server_is_asked_for_its_model() -> None:
    async with CompletionServer(routes={"/v1/models": status(401)}) as server, asking.engine(server.url, model="") as engine:
        for _ in range(20):
            with pytest.raises(EngineError, match="key"):
                await engine.ready()
        assert len(server.others) <= 3


async def test_a_black_hole_fails_at_the_connect_limit_and_then_at_once() -> None:
    with BlackHole() as url:
        async with asking.engine(url, remote={"timeout_ms": 20_000}) as engine:
            start = time.perf_counter()
            assert "cannot be reached" in str(await expect_failure(engine))
            assert 2.5 < time.perf_counter() - start < 5
            start = time.perf_counter()
            await expect_failure(engine)
            assert time.perf_counter() - start < 0.1


async def test_a_slow_first_token_is_waited_for_up_to_its_own_limit() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.hold()
        await exchange.text("ok", "stop")
        await exchange.end()

    limits = {"timeout_ms": 5_000, "stall_ms": 20}
    async with CompletionServer(script) as server, asking.engine(server.url, remote=limits) as engine:
        task = asyncio.create_task(asking.answer(engine))
        await server.request(0)
        await asyncio.wait({task}, timeout=0.1)  # longer than the limit for pauses
        server.release()
        assert await task == "ok"


@pytest.mark.parametrize("script", [hold, head_then_nothing])
async def test_no_first_token_within_the_limit_is_an_error_that_names_the_setting(script: object) -> None:
    async with CompletionServer(reply("ok"), script) as server, asking.engine(server.url, remote={"timeout_ms": 250}) as engine:  # type: ignore[arg-type]  # a script
        assert await eventually(engine, within_s=5) == "ok"  # whatever is imported at first use is there now
        assert "remote.timeoutMs" in str(await expect_failure(engine))
        await asyncio.wait_for(server.requests[-1].closed.wait(), 5)


async def test_comments_do_not_keep_a_dead_generation_alive() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.text("a")
        while not exchange.request.closed.is_set():
            await exchange.send(b": keep-alive\n\n")
            await asyncio.sleep(0.005)

    async with CompletionServer(script) as server, asking.engine(server.url, remote={"stall_ms": 60}) as engine:
        error = await expect_failure(engine)
        assert isinstance(error, StreamBrokenError)
        assert "remote.stallMs" in str(error)
        await server.requests[0].closed.wait()


@pytest.mark.parametrize("first", ["", "a"])
@pytest.mark.parametrize("empty", [{}, {"type": "ping"}, {"choices": []}, {"choices": [{"index": 0, "text": ""}]}])
async def test_events_without_text_keep_no_answer_alive_for_ever(first: str, empty: object) -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.text(first)
        while not exchange.request.closed.is_set():
            await exchange.event(empty)
            await asyncio.sleep(0.005)

    limits = {"timeout_ms": 250, "stall_ms": 20}
    async with CompletionServer(reply("ok"), script) as server, asking.engine(server.url, remote=limits) as engine:
        assert await eventually(engine, within_s=5) == "ok"
        await expect_failure(engine)
        await asyncio.wait_for(server.requests[1].closed.wait(), 5)


async def test_progress_while_the_prompt_is_read_renews_the_first_limit() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.head()
        for _ in range(6):
            await exchange.event({"content": "", "stop": False, "prompt_progress": {}})
            await asyncio.sleep(0.05)
        await exchange.event({"content": "ok", "stop": True, "stop_type": "eos"})
        await exchange.end()

    limits = {"timeout_ms": 200}
    async with CompletionServer(script) as server, asking.engine(server.url, api="llama-server", remote=limits) as engine:
        assert await asking.answer(engine) == "ok"


async def test_a_relay_ends_its_tasks() -> None:
    started = asyncio.Event()

    async def source():  # type: ignore[no-untyped-def]  # never yields
        started.set()
        await asyncio.Event().wait()
        yield

    tasks = relay.Relay()
    stream = tasks.stream(source())
    waiting = asyncio.ensure_future(anext(stream))
    await started.wait()
    await tasks.aclose()
    with pytest.raises(StreamBrokenError):
        await waiting
