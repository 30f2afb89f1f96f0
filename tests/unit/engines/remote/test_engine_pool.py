"""Several endpoints behind one engine: with servers that a test decides, and with real ones on loopback."""

from __future__ import annotations

import asyncio
import gc
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any

import pytest

from monkeycode_lsp import config
from monkeycode_lsp.domain import Priority, Prompt
from monkeycode_lsp.engines.remote.backoff import Backoff
from monkeycode_lsp.engines.remote.engine import RemoteEngine
from monkeycode_lsp.engines.remote.pool import probing, roster
from monkeycode_lsp.engines.remote.pool.member import Standing
from monkeycode_lsp.errors import (
    ContextOverflowError,
    EngineBusyError,
    EngineError,
    EngineRefusedError,
    EngineUnavailableError,
    StreamBrokenError,
)
from tests.servers import CompletionServer, Exchange, Script, hold, reply, status, unused_port
from tests.unit.engines.remote import asking, members
from tests.unit.engines.remote.members import FakeServer

DEAD = EngineUnavailableError("dead")
BUSY = EngineBusyError("busy")
REFUSED = EngineRefusedError("no")
BROKEN = StreamBrokenError("broken")
SOON_S = 5.0
"""No test waits so long unless it fails."""


@asynccontextmanager
async def engine(*servers: FakeServer, **how: Any) -> AsyncIterator[RemoteEngine]:
    """Whatever a test does, nothing is left behind."""
    before = asyncio.all_tasks()
    complaints: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    made = members.engine(*servers, **how)
    try:
        yield made
    finally:
        await made.aclose()
        await made.aclose()
        for member in made.members:
            assert member.n_asked == 0
            assert member.server.is_closed  # type: ignore[attr-defined]  # a fake
            assert member.server.n_running == 0  # type: ignore[attr-defined]  # a fake
        assert asyncio.all_tasks() <= before
        gc.collect(1)
        assert complaints == []


async def said(asked: RemoteEngine, prompt: Prompt | None = None) -> str:
    return await asyncio.wait_for(asking.answer(asked, prompt), SOON_S)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(SOON_S):
        while not true():  # noqa: ASYNC110 - states of our own without an event
            await asyncio.sleep(0.01)


async def known(asked: RemoteEngine) -> None:
    """Every member has told its model."""
    await asked.ready()
    await until(lambda: all(member.model is not None for member in asked.members))


# Who answers


async def test_the_first_that_is_alive_is_enough_and_the_others_are_found_out_meanwhile() -> None:
    a, b = FakeServer("a"), FakeServer("b")
    b.knows.clear()
    async with engine(a, b) as asked:
        ready = asyncio.create_task(asked.ready())
        for _ in range(20):
            await asyncio.sleep(0)
        assert ready.done()  # without any time going by
        model = await ready
        assert model.name == "qwen"
        assert b.n_identified == 1
        b.knows.set()
        await until(lambda: asked.members[1].model is not None)
        assert (await asked.ready()) == model
        assert (a.n_identified, b.n_identified) == (1, 1)


async def test_when_the_first_is_down_the_others_are_waited_for() -> None:
    a, b = FakeServer("a"), FakeServer("b", model="other")
    a.error = DEAD
    b.knows.clear()
    async with engine(a, b) as asked:
        ready = asyncio.create_task(asked.ready())
        await asyncio.wait({ready}, timeout=2 * roster.AGAIN_S)
        assert not ready.done()
        b.knows.set()
        assert (await ready).name == "other"


async def test_one_that_hangs_at_the_beginning_is_waited_for_only_a_moment() -> None:
    a, b = FakeServer("a"), FakeServer("b")
    a.knows.clear()
    async with engine(a, b) as asked:
        assert (await asyncio.wait_for(asked.ready(), SOON_S)).name == "qwen"
        assert await said(asked) == "b!"


async def test_when_all_are_down_the_first_ones_error_is_told() -> None:
    a, b = FakeServer("a"), FakeServer("b")
    a.error, b.error = DEAD, REFUSED
    async with engine(a, b) as asked:
        with pytest.raises(EngineUnavailableError, match="dead"):
            await asked.ready()


async def test_a_hanging_one_is_not_waited_for_again_and_again() -> None:
    a, b = FakeServer("a"), FakeServer("b")
    a.error, b.error = DEAD, BUSY
    async with engine(a, b) as asked:
        with pytest.raises(EngineUnavailableError):
            await asked.ready()
        b.knows.clear()
        with pytest.raises(EngineUnavailableError, match="dead"):
            await asyncio.wait_for(asked.ready(), SOON_S)


async def test_those_that_come_to_life_later_are_used() -> None:
    a, b = FakeServer("a"), FakeServer("b")
    a.error, b.error = DEAD, DEAD
    async with engine(a, b) as asked:
        with pytest.raises(EngineUnavailableError):
            await asked.ready()
        b.error = None
        assert (await asked.ready()).name == "qwen"
        assert await said(asked) == "b!"


async def test_one_endpoint_keeps_its_own_fingerprint_and_a_pool_has_one_that_does_not_change() -> None:
    a, b = FakeServer("a"), FakeServer("b")
    async with engine(a) as alone:
        assert (await alone.ready()).fingerprint == "remote:a"
    a = FakeServer("a")
    async with engine(a, b) as asked:
        both = await asked.ready()
        await until(lambda: asked.members[1].model is not None)
        a.error = DEAD
        assert await said(asked) == "b!"
        assert (await asked.ready()).fingerprint == both.fingerprint
    b = FakeServer("b")
    a.error = DEAD
    async with engine(a, b) as asked:
        assert (await asked.ready()).fingerprint == both.fingerprint
    async with engine(FakeServer("a"), FakeServer("b"), endpoints={"b": {"headers": {"x": "y"}}}) as asked:
        assert (await asked.ready()).fingerprint != both.fingerprint


async def test_another_model_stands_in_and_never_gets_a_prompt_that_was_not_made_for_it() -> None:
    a, b = FakeServer("a", model="one"), FakeServer("b", model="two")
    async with engine(a, b) as asked:
        one = await asked.ready()
        assert one.name == "one"
        await until(lambda: asked.members[1].model is not None)
        a.error = DEAD
        with pytest.raises(EngineUnavailableError, match="dead"):
            await said(asked, asking.fim(model=one.fingerprint))
        assert b.n_asked == 0
        two = await asked.ready()
        assert two.name == "two"
        assert await said(asked, asking.fim(model=two.fingerprint)) == "b!"
        a.error = None
        await until(lambda: asked.members[0].is_good)
        assert await asked.ready() == one
        assert await said(asked, asking.fim(model=one.fingerprint)) == "a!"
        with pytest.raises(EngineBusyError):
            await said(asked, asking.fim(model="remote:gone"))


async def test_a_server_that_comes_back_with_another_model_gets_only_prompts_of_that_one() -> None:
    a, b = FakeServer("a"), FakeServer("b")
    async with engine(a, b) as asked:
        await known(asked)
        qwen = await asked.ready()
        a.error = DEAD
        assert {await said(asked, asking.fim(model=qwen.fingerprint)) for _ in range(3)} == {"b!"}
        a.error, a.model, n_asked = None, FakeServer("a", model="starcoder", family="starcoder2").model, a.n_asked
        await until(lambda: asked.members[0].is_good)
        assert {await said(asked, asking.fim(model=qwen.fingerprint)) for _ in range(10)} == {"b!"}
        assert a.n_asked == n_asked
        starcoder = await asked.ready()
        assert starcoder.name == "starcoder"
        assert await said(asked, asking.fim(model=starcoder.fingerprint)) == "a!"


async def test_before_a_look_has_seen_that_it_is_back_it_is_asked_for_its_model_too() -> None:
    a, b = FakeServer("a"), FakeServer("b", model="other")
    a.look = never  # type: ignore[method-assign]  # hangs
    async with engine(a, b) as asked:
        await known(asked)
        qwen = await asked.ready()
        a.error = b.error = DEAD
        asked.members[1].failed(DEAD)
        with pytest.raises(EngineUnavailableError):
            await said(asked, asking.fim(model=qwen.fingerprint))
        a.error, a.model, n_asked = None, FakeServer("a", model="starcoder", family="starcoder2").model, a.n_asked
        with pytest.raises(EngineBusyError, match="model"):
            await said(asked, asking.fim(model=qwen.fingerprint))
        assert (a.n_asked, b.n_asked) == (n_asked, 0)
        starcoder = await asked.ready()
        assert starcoder.name == "starcoder"
        assert await said(asked, asking.fim(model=starcoder.fingerprint)) == "a!"


async def test_an_ask_that_waits_for_a_server_does_not_go_to_another_model_there() -> None:
    a = FakeServer("a")
    async with engine(a, concurrency=1) as asked:
        qwen = await asked.ready()
        a.hold()
        first = asyncio.create_task(said(asked))
        await a.begun.wait()
        waiting = asyncio.create_task(said(asked, asking.fim(model=qwen.fingerprint)))
        await until(lambda: len(asked._made._dispatcher.admission) == 1)  # type: ignore[union-attr]  # it is made
        a.model = type(qwen)("starcoder", None, "remote:a:starcoder")
        a._told = None  # it was away
        starcoder = await asked.ready()
        a.go()
        assert await first == "a!"
        with pytest.raises(EngineBusyError, match="another model"):
            await waiting
        assert a.n_asked == 1
        assert await said(asked, asking.fim(model=starcoder.fingerprint)) == "a!"


async def test_what_a_server_says_of_itself_may_make_no_sense() -> None:
    a, b, told = FakeServer("a"), FakeServer("b"), list[str]()

    async def senseless() -> Any:
        raise OverflowError

    a.ready = senseless  # type: ignore[method-assign]  # nobody expected that
    async with engine(a, b, told=told) as asked:
        assert [await said(asked) for _ in range(3)] == ["b!"] * 3
        assert len(told) == 1
        assert "no sense" in told[0]


async def test_what_cannot_be_an_address_is_left_out_and_told_once() -> None:
    told: list[str] = []
    settings = config.Remote(endpoints=(config.Endpoint(url="ftp://x"), config.Endpoint(url="http://a")))
    made = RemoteEngine(settings=settings, notify=told.append, environ={}, connect=lambda _: FakeServer("a"))
    for _ in range(3):
        assert await said(made) == "a!"
    await made.aclose()
    assert len(told) == 1
    assert "is left out" in told[0]
    assert "url" in told[0]


async def test_the_window_of_a_pool_is_the_least_and_an_overflow_teaches_it() -> None:
    a, b = FakeServer("a"), FakeServer("b")
    b.model = FakeServer("b").model
    async with engine(a, b) as asked:
        assert (await asked.ready()).context_tokens == 4096
        a.error = ContextOverflowError("too long", limit_tokens=1024)
        a.knows.set()

        async def smaller() -> Any:
            return type(a.model)("qwen", a.model.family, "remote:a", context_tokens=1024)

        a.ready = smaller  # type: ignore[method-assign]  # what the endpoint has learned
        with pytest.raises(ContextOverflowError):
            await said(asked)
        assert b.n_asked == 0
        assert (await asked.ready()).context_tokens == 1024


# Tries


@pytest.mark.parametrize("error", [DEAD, BUSY, BROKEN, REFUSED])
async def test_another_one_answers_quietly(error: EngineError) -> None:
    a, b = FakeServer("a"), FakeServer("b")
    async with engine(a, b) as asked:
        await known(asked)
        a.error = error
        assert await said(asked) == "b!"
        assert (a.n_asked, b.n_asked) == (1, 1)
        assert await said(asked) == "b!"
        assert a.n_asked == 1


async def test_an_ask_that_fails_at_the_first_one_waits_a_moment_for_another_that_is_about_to_tell_its_model() -> None:
    a, b = FakeServer("a"), FakeServer("b")
    b.knows.clear()
    async with engine(a, b) as asked:
        await asked.ready()
        a.error = REFUSED
        ask = asyncio.create_task(said(asked))
        await until(lambda: a.n_asked == 1)
        b.knows.set()
        assert await ask == "b!"


async def test_who_refuses_what_others_take_is_left_out_and_told_once() -> None:
    a, b, told = FakeServer("a"), FakeServer("b"), list[str]()
    async with engine(a, b, told=told) as asked:
        await asked.ready()
        a.error = REFUSED
        for _ in range(5):
            assert await said(asked) == "b!"
        assert a.n_asked == 1
        assert told == ["The endpoint http://a is left out: no"]
        assert asked.members[0].standing is Standing.LEFT_OUT
        asked.members[0].came_back()
        assert {await said(asked) for _ in range(4)} == {"b!"}
        assert a.n_asked == 2
        assert len(told) == 1


async def test_what_all_refuse_is_nobodys_fault() -> None:
    a, b, told = FakeServer("a"), FakeServer("b"), list[str]()
    async with engine(a, b, told=told) as asked:
        await known(asked)
        a.error = b.error = REFUSED
        with pytest.raises(EngineRefusedError):
            await said(asked)
        assert (a.n_asked, b.n_asked) == (1, 1)
        assert all(member.is_good for member in asked.members)
        a.error = b.error = None
        assert await said(asked) == "a!"
        assert told == []


async def test_one_that_never_told_its_model_is_told_once_when_another_serves() -> None:
    a, b, told = FakeServer("a"), FakeServer("b"), list[str]()
    b.error = REFUSED
    async with engine(a, b, told=told) as asked:
        for _ in range(3):
            assert await said(asked) == "a!"
        assert told == ["The endpoint http://b is left out: no"]


async def test_after_the_first_piece_nothing_is_tried_again() -> None:
    a, b = FakeServer("a"), FakeServer("b")
    a.breaks = BROKEN
    async with engine(a, b) as asked:
        await asked.ready()
        with pytest.raises(StreamBrokenError):
            await said(asked)
        assert b.n_asked == 0
        assert await said(asked) == "b!"


async def test_the_number_of_tries_is_the_setting() -> None:
    servers = [FakeServer(name) for name in "abcd"]
    async with engine(*servers, retries=1) as asked:
        await known(asked)
        for server in servers:
            server.error = BROKEN
        with pytest.raises(StreamBrokenError):
            await said(asked)
        assert sum(server.n_asked for server in servers) == 2


async def test_a_busy_one_alone_is_asked_once_more_and_then_left_alone() -> None:
    a = FakeServer("a")
    a.error = BUSY
    async with engine(a) as asked:
        for _ in range(30):
            with pytest.raises(EngineBusyError):
                await said(asked)
        assert 2 <= a.n_asked <= 4


async def test_a_busy_one_that_says_when_is_asked_then() -> None:
    a = FakeServer("a")
    a.error = EngineBusyError("busy", retry_after_s=0.3)
    async with engine(a) as asked:
        asks = [asyncio.create_task(said(asked)) for _ in range(2)]
        await until(lambda: a.n_asked == 2)
        late = asyncio.create_task(said(asked))  # comes while it rests
        a.error = None
        assert await asyncio.gather(*asks, late) == ["a!"] * 3
        assert a.n_asked == 5


async def test_a_dead_one_alone_is_not_waited_for() -> None:
    a = FakeServer("a")
    a.error = DEAD
    async with engine(a) as asked:
        for _ in range(20):
            with pytest.raises(EngineUnavailableError):
                await said(asked)
        assert 2 <= a.n_asked + a.n_identified <= 4


# Shares, places, sessions


async def test_documents_keep_their_server_and_idle_ones_share_by_weight() -> None:
    a, b = FakeServer("a"), FakeServer("b")
    async with engine(a, b, endpoints={"a": {"weight": 2}}) as asked:
        await known(asked)
        firsts = {name: await said(asked, asking.fim(session=name)) for name in "stuvwx"}
        assert Counter(firsts.values()) == {"a!": 4, "b!": 2}
        for _ in range(5):
            for name, first in firsts.items():
                assert await said(asked, asking.fim(session=name)) == first


async def test_no_server_gets_more_asks_at_once_than_the_setting_allows() -> None:
    a, b = FakeServer("a"), FakeServer("b")
    async with engine(a, b, concurrency=3, endpoints={"a": {"weight": 3}}) as asked:
        await known(asked)
        a.hold()
        b.hold()
        asks = [asyncio.create_task(said(asked)) for _ in range(20)]
        await until(lambda: a.n_running + b.n_running == 6)
        a.go()
        b.go()
        await asyncio.gather(*asks)
        assert (a.most_running, b.most_running) == (3, 3)
        assert a.n_asked + b.n_asked == 20


async def test_endpoints_at_one_server_have_its_places_together() -> None:
    a = CompletionServer(hold)
    async with a, pool(a.url, f"{a.url}/v1", a.url, more={2: {"headers": {"x": "y"}}}, concurrency=2) as asked:
        asks = [asyncio.create_task(said(asked)) for _ in range(6)]
        await asyncio.wait_for(a.request(1), SOON_S)
        await asyncio.wait(asks, timeout=0.2)
        assert len(asked.members) == 2
        assert sum(member.n_asked for member in asked.members) == len(a.requests) == 2
        for ask in asks:
            ask.cancel()
        await asyncio.wait(asks)


async def test_who_waits_too_long_hears_of_the_setting() -> None:
    a = FakeServer("a")
    async with engine(a, concurrency=1, timeout_ms=60) as asked:
        a.hold()
        first = asyncio.create_task(said(asked))
        await a.begun.wait()
        with pytest.raises(EngineBusyError, match=r"remote\.concurrency"):
            await said(asked)
        a.go()
        assert await first == "a!"


async def test_an_urgent_ask_finds_the_last_place() -> None:
    a = FakeServer("a")
    async with engine(a, concurrency=2) as asked:
        a.hold()
        ahead = [asyncio.create_task(said(asked, asking.fim(priority=Priority.LOOK_AHEAD))) for _ in range(3)]
        await a.begun.wait()
        urgent = asyncio.create_task(said(asked))
        await until(lambda: a.n_asked == 2)
        a.go()
        assert await asyncio.gather(urgent, *ahead) == ["a!"] * 4


# Coming back


@pytest.mark.parametrize("error", [DEAD, BROKEN])
async def test_one_that_failed_is_looked_at_and_used_again(error: EngineError) -> None:
    a, b = FakeServer("a"), FakeServer("b")
    async with engine(a, b) as asked:
        await known(asked)
        a.error = error
        assert await said(asked) == "b!"
        await said(asked)
        n_asked = a.n_asked
        await until(lambda: a.n_looks > 0)
        a.error = None
        await until(lambda: asked.members[0].is_good)
        assert a.n_asked == n_asked  # no ask was risked on it
        assert Counter([await said(asked) for _ in range(20)]) == {"a!": 10, "b!": 10}


async def test_looks_become_rare_and_end_when_nobody_asks() -> None:
    clock = members.Clock()
    a = FakeServer("a")
    a.error = BROKEN
    member = members.member(a)
    member.model = a.model
    member.failed(BROKEN)
    known = roster.Roster([member], digest="", notify=print, came_back=print)
    prober = probing.Prober([member], known, clock=clock, came_back=print)
    prober.used()
    prober.used()
    await until(lambda: a.n_looks == 1)
    assert prober._pauses[member] == 4 * probing.FIRST_S
    clock.now += probing.USED_S + 1
    (watch,) = prober._watching.values()
    await asyncio.wait({watch}, timeout=SOON_S)
    assert watch.done()
    assert a.n_looks == 2  # the one that was due
    await prober.aclose()


async def test_a_look_that_hangs_is_given_up_by_closing_the_engine() -> None:
    a, b = FakeServer("a"), FakeServer("b")
    looking = asyncio.Event()

    async def look(_: str) -> bytes | None:
        looking.set()
        await asyncio.Event().wait()
        return None

    a.look = look  # type: ignore[method-assign]  # hangs
    async with engine(a, b) as asked:
        await asked.ready()
        a.error = DEAD
        assert await said(asked) == "b!"
        await asked.ready()
        await asyncio.wait_for(looking.wait(), SOON_S)


async def test_one_that_can_be_seen_is_enough_to_be_reachable() -> None:
    a, b = FakeServer("a"), FakeServer("b")
    a.look = never  # type: ignore[method-assign]  # hangs
    async with engine(a, b) as asked:
        assert await asyncio.wait_for(asked.reachable(), 2.5)
        b.error = REFUSED
        assert await asked.reachable()


async def test_nothing_is_reachable_when_all_are_dead_or_still_load() -> None:
    a, b = FakeServer("a"), FakeServer("b")
    a.error, b.error = DEAD, BUSY
    async with engine(a, b) as asked:
        assert not await asked.reachable()
        a.error = None
        assert await asked.reachable()
        assert await said(asked) == "a!"
    nothing = RemoteEngine(settings=config.Remote(), notify=print, environ={})
    assert not await nothing.reachable()


async def test_a_look_does_not_end_a_rest_that_the_server_asked_for() -> None:
    a, b = FakeServer("a"), FakeServer("b")
    async with engine(a, b) as asked:
        await known(asked)
        a.error, b.error = DEAD, EngineBusyError("wait", retry_after_s=30)
        for _ in range(3):
            with pytest.raises(EngineError):
                await said(asked)
            b.error = None
            assert await asked.reachable()
        assert b.n_asked == 1
        a.error = None
        assert await asked.reachable()
        assert await said(asked) == "a!"


async def test_one_alone_that_is_seen_again_is_asked_at_once() -> None:
    a = FakeServer("a")
    async with engine(a) as asked:
        a.error = DEAD
        for _ in range(5):
            with pytest.raises(EngineUnavailableError):
                await said(asked)
        a.error = None
        assert await asked.reachable()
        assert await said(asked) == "a!"


async def test_who_stops_looking_leaves_nothing_behind() -> None:
    a = FakeServer("a")
    a.look = never  # type: ignore[method-assign]  # hangs
    async with engine(a) as asked:
        looking = asyncio.create_task(asked.reachable())
        await asyncio.sleep(0)
        looking.cancel()
        await asyncio.wait({looking})
        assert looking.cancelled()


async def never(_: str) -> bytes | None:
    await asyncio.Event().wait()
    return None


# Asking a second one


async def warmed(asked: RemoteEngine, seconds: float = 0.01) -> None:
    await known(asked)
    for member in asked.members:
        for _ in range(40):
            member.latencies.add(seconds)


async def test_a_second_one_answers_when_the_first_is_slower_than_ever() -> None:
    a, b = FakeServer("a"), FakeServer("b")
    async with engine(a, b) as asked:
        await warmed(asked)
        a.hold()
        assert await said(asked, asking.fim(session="s")) == "b!"
        await until(lambda: a.n_running == 0)
        assert asked.members[0].n_asked == 0
        assert await said(asked, asking.fim(session="s")) == "b!"


async def test_a_first_one_that_hangs_costs_no_answer_though_nothing_is_known_of_it() -> None:
    a, b = FakeServer("a"), FakeServer("b")
    a.look = never  # type: ignore[method-assign]  # hangs
    a.hold()
    async with engine(a, b, timeout_ms=60_000) as asked:
        for _ in range(3):
            assert await said(asked, asking.fim(session="s")) == "b!"
        assert a.n_asked == 1


async def test_a_second_one_may_tell_its_model_while_the_first_is_waited_for() -> None:
    a, b = FakeServer("a"), FakeServer("b")
    b.knows.clear()
    a.hold()
    async with engine(a, b, timeout_ms=60_000) as asked:
        model = await asked.ready()
        ask = asyncio.create_task(said(asked, asking.fim(model=model.fingerprint)))
        await asyncio.wait_for(a.begun.wait(), SOON_S)
        b.knows.set()
        assert await ask == "b!"


async def test_a_document_leaves_a_server_that_is_much_slower_than_another() -> None:
    a, b = FakeServer("a"), FakeServer("b")
    async with engine(a, b, hedge="off") as asked:
        await known(asked)
        assert await said(asked, asking.fim(session="s")) == "a!"
        for _ in range(3):
            asked.members[0].latencies.add(2.0)
        assert [await said(asked, asking.fim(session="s")) for _ in range(5)] == ["b!"] * 5
        assert [await said(asked, asking.fim(session="t")) for _ in range(5)] == ["b!"] * 5


async def test_no_second_one_is_asked_at_the_same_server() -> None:
    a, b = FakeServer("a"), FakeServer("b")
    async with engine(a, b) as asked:
        await warmed(asked)
        neighbours = tuple(asked.members)
        for member in neighbours:
            member.neighbours = neighbours
        a.hold()
        ask = asyncio.create_task(said(asked))
        await asyncio.wait({ask}, timeout=0.2)
        assert b.n_asked == 0
        a.go()
        assert await ask == "a!"


async def test_the_first_may_still_win_and_the_second_is_stopped() -> None:
    a, b = FakeServer("a"), FakeServer("b")
    async with engine(a, b) as asked:
        await warmed(asked)
        a.hold()
        b.hold()
        ask = asyncio.create_task(said(asked))
        await asyncio.wait_for(b.begun.wait(), SOON_S)
        a.go()
        assert await ask == "a!"
        await until(lambda: b.n_running == 0)


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(("first", "second"), [(DEAD, None), (None, DEAD), (DEAD, BROKEN)])
async def test_of_two_that_are_asked_one_may_fail(first: EngineError | None, second: EngineError | None, *, at_once: bool) -> None:
    a, b = FakeServer("a"), FakeServer("b")
    async with engine(a, b) as asked:
        await warmed(asked)
        a.hold()
        b.hold()
        ask = asyncio.create_task(said(asked))
        await asyncio.wait_for(b.begun.wait(), SOON_S)
        a.error, b.error = first, second
        a.go()
        for _ in range(0 if at_once else 5):
            await asyncio.sleep(0)
        b.go()
        if first and second:
            with pytest.raises(EngineError):
                await ask
        else:
            assert await ask == ("b!" if first else "a!")
        assert (a.n_asked, b.n_asked) == (1, 1)
        del ask
        gc.collect()  # an error that nobody looked at is complained about now


@pytest.mark.parametrize(
    ("settings", "priority"),
    [
        ({"hedge": "off"}, Priority.INTERACTIVE),
        ({"endpoints": {"b": {"metered": "yes"}}}, Priority.INTERACTIVE),
        ({}, Priority.LOOK_AHEAD),
    ],
)
async def test_no_second_one_is_asked_where_it_is_not_wanted(settings: dict[str, Any], priority: Priority) -> None:
    a, b = FakeServer("a"), FakeServer("b")
    async with engine(a, b, **settings) as asked:
        await warmed(asked)
        a.hold()
        ask = asyncio.create_task(said(asked, asking.fim(priority=priority)))
        await asyncio.wait({ask}, timeout=0.2)
        assert b.n_asked == 0
        a.go()
        assert await ask == "a!"


async def test_only_a_share_of_the_asks_gets_a_second_request() -> None:
    a, b = FakeServer("a"), FakeServer("b")
    async with engine(a, b, concurrency=50) as asked:
        await warmed(asked)
        a.hold()
        asks = [asyncio.create_task(said(asked)) for _ in range(60)]
        await until(lambda: a.n_asked + b.n_asked > 60)
        await asyncio.wait(asks, timeout=0.3)
        assert a.n_asked + b.n_asked <= 67
        a.go()
        await asyncio.gather(*asks)


# Cancelling and closing


class Scene:
    """One ask to two servers with one place each, which a test cancels."""

    def __init__(self, a: FakeServer, b: FakeServer, asked: RemoteEngine) -> None:
        self.a, self.b, self.asked = a, b, asked
        self.others: list[asyncio.Task[str]] = []
        self.heard = asyncio.Event()

    @property
    def n_running(self) -> int:
        return self.a.n_running + self.b.n_running

    async def ask(self) -> None:
        async with aclosing(self.asked.stream(asking.fim())) as chunks:
            async for _ in chunks:
                self.heard.set()
                await asyncio.Event().wait()


async def at_the_beginning(scene: Scene) -> asyncio.Task[None]:
    return asyncio.create_task(scene.ask())


async def in_the_line(scene: Scene) -> asyncio.Task[None]:
    scene.others = [asyncio.create_task(said(scene.asked, asking.fim(priority=Priority.BATCH))) for _ in range(2)]
    await until(lambda: scene.n_running == 2)
    task = asyncio.create_task(scene.ask())
    await until(lambda: len(scene.asked._made._dispatcher.admission) == 1)  # type: ignore[union-attr]  # it is made
    return task


async def waiting_to_try_again(scene: Scene) -> asyncio.Task[None]:
    scene.a.error = scene.b.error = EngineBusyError("busy", retry_after_s=30)
    scene.a.go()
    scene.b.go()
    task = asyncio.create_task(scene.ask())
    await until(lambda: scene.a.n_asked == scene.b.n_asked == 1 and scene.n_running == 0)
    return task


async def while_two_are_asked(scene: Scene) -> asyncio.Task[None]:
    task = asyncio.create_task(scene.ask())
    await until(lambda: scene.n_running == 2)
    return task


async def in_mid_stream(scene: Scene) -> asyncio.Task[None]:
    scene.a.go()
    task = asyncio.create_task(scene.ask())
    await scene.heard.wait()
    return task


async def test_those_who_wait_go_to_a_server_as_soon_as_it_has_answered_again() -> None:
    a, b = FakeServer("a"), FakeServer("b")
    async with engine(a, b, concurrency=2) as asked:
        await known(asked)
        for member in asked.members:
            member.failed(DEAD)
        a.look = b.look = never  # type: ignore[method-assign]  # only an answer can tell that it is back
        a.hold()
        b.hold()
        scene = Scene(a, b, asked)
        asks = [asyncio.create_task(scene.ask()) for _ in range(3)]  # they keep their places
        await until(lambda: scene.n_running == 2)
        assert len(asked._made._dispatcher.admission) == 1  # type: ignore[union-attr]  # it is made
        a.go()
        await until(lambda: a.n_running == 2)
        for ask in asks:
            ask.cancel()
        await asyncio.wait(asks)


@pytest.mark.parametrize("n_times", [1, 3])
@pytest.mark.parametrize("phase", [at_the_beginning, in_the_line, waiting_to_try_again, while_two_are_asked, in_mid_stream])
async def test_a_cancel_in_any_phase_gives_everything_back(phase: Callable[[Scene], Awaitable[asyncio.Task[None]]], n_times: int) -> None:
    a, b = FakeServer("a"), FakeServer("b")
    async with engine(a, b, concurrency=1, timeout_ms=60_000) as asked:
        await warmed(asked)
        a.hold()
        b.hold()
        scene = Scene(a, b, asked)
        task = await phase(scene)
        for _ in range(n_times):
            task.cancel()
            await asyncio.sleep(0)
        await asyncio.wait({task}, timeout=SOON_S)
        assert task.cancelled()
        await until(lambda: scene.n_running == len(scene.others))
        await until(lambda: sum(member.n_asked for member in asked.members) == len(scene.others))
        a.go()
        b.go()
        await asyncio.gather(*scene.others)
        a.error = b.error = None
        for server in (a, b):
            server.backoff = Backoff(time.monotonic)  # the rest that it asked for is over
        assert await said(asked) in {"a!", "b!"}


async def test_a_cancel_while_models_are_found_out_leaves_that_to_who_comes_next() -> None:
    a, b = FakeServer("a"), FakeServer("b")
    a.knows.clear()
    b.knows.clear()
    async with engine(a, b) as asked:
        ready = asyncio.create_task(asked.ready())
        await until(lambda: a.n_identified == 1)
        ready.cancel()
        await asyncio.wait({ready})
        a.knows.set()
        assert await said(asked) == "a!"
        assert a.n_identified == 1


@pytest.mark.parametrize("phase", ["queued", "waiting to try again", "two asked"])
async def test_closing_the_engine_ends_every_ask(phase: str) -> None:
    a, b = FakeServer("a"), FakeServer("b")
    asked = members.engine(a, b, concurrency=1)
    await warmed(asked)
    if phase == "waiting to try again":
        a.error = b.error = EngineBusyError("busy", retry_after_s=0.3)
    else:
        a.hold()
        b.hold()
    n_asks = {"queued": 3, "two asked": 1}.get(phase, 2)
    asks = [asyncio.create_task(said(asked)) for _ in range(n_asks)]
    await until(lambda: a.n_asked + b.n_asked >= 2)
    await asked.aclose()
    n_asked = a.n_asked + b.n_asked
    a.error = b.error = BROKEN  # what an endpoint that is closed says to its streams
    a.go()
    b.go()
    results = await asyncio.wait_for(asyncio.gather(*asks, return_exceptions=True), SOON_S)
    assert all(isinstance(result, EngineError) for result in results)
    assert a.n_asked + b.n_asked == n_asked
    with pytest.raises(EngineUnavailableError, match="closed"):
        await said(asked)


async def test_many_asks_and_cancels_leave_nothing() -> None:
    a, b, c = FakeServer("a"), FakeServer("b"), FakeServer("c")
    async with engine(a, b, c, concurrency=2) as asked:
        await warmed(asked, 0.0)
        asks = []
        for number in range(600):
            asks.append(asyncio.create_task(said(asked, asking.fim(session=str(number % 7), priority=Priority(number % 4)))))
            if number % 3 == 0:
                a.hold() if number % 2 else a.go()
            if number % 2:
                asks[number // 2].cancel()
                await asyncio.sleep(0)
        for server in (a, b, c):
            server.go()
        results = await asyncio.wait_for(asyncio.gather(*asks, return_exceptions=True), 20)
        assert {type(result) for result in results} <= {str, asyncio.CancelledError}
        assert all(server.most_running <= 2 for server in (a, b, c))


# Real servers


@asynccontextmanager
async def pool(
    *servers: CompletionServer | str, told: list[str] | None = None, more: dict[int, dict[str, Any]] | None = None, **remote: Any
) -> AsyncIterator[RemoteEngine]:
    async with AsyncExitStack() as stack:
        urls = [server if isinstance(server, str) else (await stack.enter_async_context(server)).url for server in servers]
        endpoints = tuple(
            config.Endpoint(url=url, **{"model": asking.QWEN, "api": "openai"} | (more or {}).get(number, {}))
            for number, url in enumerate(urls)
        )
        settings = config.Remote(endpoints=endpoints, **remote)
        made = RemoteEngine(settings=settings, notify=(told if told is not None else []).append, environ={})
        stack.push_async_callback(made.aclose)
        yield made


async def test_real_servers_share_by_weight() -> None:
    a, b = CompletionServer(reply("a")), CompletionServer(reply("b"))
    async with pool(a, b, more={0: {"weight": 2}}) as asked:
        await known(asked)
        assert Counter([await said(asked) for _ in range(60)]) == {"a": 40, "b": 20}


async def test_a_wrong_key_at_one_of_two_is_told_and_the_other_serves() -> None:
    a, b, told = CompletionServer(status(401)), CompletionServer(reply("b")), list[str]()
    async with pool(a, b, told=told) as asked:
        for _ in range(10):
            assert await said(asked) == "b"
        assert len(a.requests) == 1
        (message,) = told
        assert a.url in message
        assert "key" in message


async def test_the_one_that_was_slow_is_disconnected() -> None:
    slow = asyncio.Event()

    async def script(exchange: Exchange) -> None:
        await (hold if slow.is_set() else reply("a"))(exchange)

    a, b = CompletionServer(script), CompletionServer(reply("b"))
    async with pool(a, b) as asked:
        await warmed(asked)
        assert {await said(asked, asking.fim(session="s")), await said(asked)} == {"a", "b"}  # both are connected now
        await until(lambda: all(member.n_asked == 0 for member in asked.members))
        slow.set()
        assert await said(asked, asking.fim(session="s")) == "b"
        assert len(a.requests) == 2
        await asyncio.wait_for(a.requests[-1].closed.wait(), SOON_S)


async def test_too_many_requests_are_sent_again_when_the_server_says() -> None:
    a = CompletionServer(status(429, **{"Retry-After": "1"}), reply("a"))
    async with pool(a) as asked:
        began = asyncio.get_running_loop().time()
        assert await said(asked) == "a"
        assert asyncio.get_running_loop().time() - began > 0.9
        assert len(a.requests) == 2


async def test_too_many_requests_at_one_go_to_the_other_at_once() -> None:
    a, b = CompletionServer(status(429, **{"Retry-After": "30"})), CompletionServer(reply("b"))
    async with pool(a, b) as asked:
        for _ in range(5):
            assert await said(asked) == "b"
        assert len(a.requests) == 1


async def test_a_server_that_only_a_look_found_away_is_asked_for_its_model_again() -> None:
    port, other = unused_port(), asking.QWEN
    models = [status(200, {"data": [{"id": name, "owned_by": "vllm"}]}) for name in (other, "starcoder2")]
    first, second = (CompletionServer(reply("ok"), routes={"/v1/models": listed}, port=port) for listed in models)
    url = f"http://127.0.0.1:{port}"
    async with pool(url, CompletionServer(reply("b")), more={0: {"model": "", "api": "auto"}}) as asked:
        async with first:
            await known(asked)
            qwen = await asked.ready()
            assert {await said(asked, asking.fim(model=qwen.fingerprint)) for _ in range(4)} == {"ok", "b"}
        member = asked.members[0]
        member.was_silent(60)
        await asked.ready()
        await until(lambda: member.error is not None)
        async with second:
            async with asyncio.timeout(10):
                while member.standing is not Standing.GOOD:
                    await said(asked, asking.fim(model=qwen.fingerprint))
                    await asyncio.sleep(0.05)
            assert {await said(asked, asking.fim(model=qwen.fingerprint)) for _ in range(4)} == {"b"}
            assert (await asked.ready()).name == "starcoder2"
            assert second.requests == []


async def test_a_server_that_finds_out_by_itself_that_it_has_another_model_does_not_get_the_prompt() -> None:
    port = unused_port()
    models = [status(200, {"data": [{"id": name, "owned_by": "vllm"}]}) for name in (asking.QWEN, "starcoder2")]
    first, second = (CompletionServer(reply("ok"), routes={"/v1/models": listed}, port=port) for listed in models)
    async with pool(f"http://127.0.0.1:{port}", CompletionServer(reply("b")), more={0: {"model": "", "api": "auto"}}) as asked:
        async with first:
            await known(asked)
            qwen = await asked.ready()
        asked.members[0].server._knowledge.doubt()  # type: ignore[attr-defined]  # an answer that nobody waited for has failed
        async with second:
            assert [await said(asked, asking.fim(model=qwen.fingerprint)) for _ in range(6)] == ["b"] * 6
            assert second.requests == []


async def rst(exchange: Exchange) -> None:
    exchange.reset()


@asynccontextmanager
async def coming_and_going(fate: str) -> AsyncIterator[tuple[str, Callable[[], Awaitable[None]], Callable[[], Awaitable[None]]]]:
    """A server that says `b`; its address, and what makes it ill and well."""
    is_ill = False
    illness = {"reset": rst, "503": status(503), "hangs": hold}.get(fate, hold)

    def unless_ill(script: Script) -> Script:
        async def either(exchange: Exchange) -> None:
            await (illness if is_ill else script)(exchange)

        return either

    def made(port: int) -> CompletionServer:
        return CompletionServer(unless_ill(reply("b")), routes={"/health": unless_ill(status(200))}, port=port)

    server = await made(unused_port()).__aenter__()

    async def fall_ill() -> None:
        nonlocal is_ill
        is_ill = True
        if fate == "gone":
            await server.__aexit__()

    async def recover() -> None:
        nonlocal is_ill, server
        is_ill = False
        server.release()
        if fate == "gone":
            server = await made(server.port).__aenter__()

    try:
        yield server.url, fall_ill, recover
    finally:
        await server.__aexit__()


@pytest.mark.parametrize(("fate", "n_lost"), [("gone", 0), ("reset", 0), ("503", 0), ("hangs", 1)])
async def test_a_server_that_goes_and_comes_back_costs_at_most_one_answer(fate: str, n_lost: int) -> None:
    async with coming_and_going(fate) as (url, fall_ill, recover), pool(CompletionServer(reply("a")), url, timeout_ms=2_000) as asked:
        await warmed(asked, 0.02)
        assert {await said(asked) for _ in range(4)} == {"a", "b"}
        await fall_ill()
        answers = []
        for _ in range(12):
            try:
                answers.append(await said(asked))
            except EngineError:
                continue
        assert len(answers) >= 12 - n_lost
        assert set(answers) == {"a"}
        await recover()
        async with asyncio.timeout(10):
            while await said(asked) != "b":  # noqa: ASYNC110 - asks as a user does
                await asyncio.sleep(0.05)
