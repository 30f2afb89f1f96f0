from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.domain import Priority
from monkeycode_lsp.engines.remote.pool import admission
from monkeycode_lsp.engines.remote.pool.admission import Admission, Place, Request
from monkeycode_lsp.engines.remote.pool.attempt import Attempt
from monkeycode_lsp.engines.remote.pool.member import Member
from monkeycode_lsp.errors import EngineBusyError, EngineUnavailableError
from tests.unit.engines.remote import asking, members
from tests.unit.engines.remote.members import Clock

DEAD = EngineUnavailableError("dead")
INTERACTIVE, LOOK_AHEAD, WARM_UP, BATCH = Priority
LONGEST_S = 10.0


def queue(clock: Clock, *, limit: int = 1) -> Admission:
    return Admission(limit=limit, longest_s=LONGEST_S, clock=clock)


def turn(priority: Priority = INTERACTIVE, expected_s: float = 1.0, at: float = 0.0) -> float:
    return admission.turn(Request((), priority=priority, expected_s=expected_s), at=at, longest_s=LONGEST_S)


def test_of_those_who_come_together_the_urgent_and_then_the_short_are_first() -> None:
    due = [turn(priority, expected_s) for priority in Priority for expected_s in (0.1, 1.0, 2.0, 1e6)]
    assert due == sorted(due)
    assert len(set(due)) == len(due)


@given(st.sampled_from(Priority), st.floats(0, 1e9), st.floats(0, 1e9))
def test_nobody_is_overtaken_by_who_comes_after_his_patience(priority: Priority, expected_s: float, other_s: float) -> None:
    assert turn(priority, expected_s) <= turn(INTERACTIVE, other_s, at=LONGEST_S * 0.7)


async def test_a_prompt_is_expected_to_take_longer_the_longer_it_and_its_answer_are() -> None:
    short, long, talkative = (
        admission.request(prompt, ()).expected_s
        for prompt in (asking.fim(max_tokens=10), asking.fim("a" * 50_000, max_tokens=10), asking.fim(max_tokens=500))
    )
    assert short < long < talkative


async def in_line(line: Admission, request: Request, order: list[str], name: str) -> Place:
    place = line.take(request) or await line.wait(request, line._clock() + LONGEST_S)
    order.append(name)
    return place


async def test_places_go_to_who_is_due_first() -> None:
    clock, order = Clock(), []
    member = members.member(members.FakeServer())
    line = queue(clock)
    place = line.take(Request([member]))
    assert place is not None
    asks = {
        "batch": Request([member], BATCH),
        "long": Request([member], INTERACTIVE, expected_s=3),
        "ahead": Request([member], LOOK_AHEAD),
        "short": Request([member], INTERACTIVE, expected_s=1),
    }
    tasks = [asyncio.create_task(in_line(line, request, order, name)) for name, request in asks.items()]
    await asyncio.sleep(0)
    assert len(line) == 4
    place.release()
    for _ in tasks:
        done, _ = await asyncio.wait([task for task in tasks if task.get_name() != "over"], return_when=asyncio.FIRST_COMPLETED)
        assert len(done) == 1
        for task in done:
            task.set_name("over")
            task.result().release()
    assert order == ["short", "long", "ahead", "batch"]
    assert member.n_asked == 0


async def test_one_that_waits_long_goes_before_more_urgent_ones_that_come_later() -> None:
    clock, order = Clock(), []
    member = members.member(members.FakeServer())
    line = queue(clock)
    place = line.take(Request([member]))
    assert place is not None
    old = asyncio.create_task(in_line(line, Request([member], BATCH), order, "old"))
    await asyncio.sleep(0)
    clock.now += 8
    new = asyncio.create_task(in_line(line, Request([member]), order, "new"))
    await asyncio.sleep(0)
    place.release()
    (await old).release()
    (await new).release()
    assert order == ["old", "new"]


async def test_who_is_cancelled_leaves_at_once_and_a_place_that_he_was_just_given_is_not_lost() -> None:
    member = members.member(members.FakeServer())
    line = queue(Clock())
    place = line.take(Request([member]))
    assert place is not None
    waiting = asyncio.create_task(line.wait(Request([member]), line._clock() + LONGEST_S))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    assert len(line) == 0
    given = asyncio.create_task(line.wait(Request([member]), line._clock() + LONGEST_S))
    await asyncio.sleep(0)
    place.release()
    assert member.n_asked == 1
    given.cancel()
    await asyncio.wait({given})
    assert given.cancelled()
    assert member.n_asked == 0


async def test_one_who_was_cancelled_in_the_same_step_is_passed_over() -> None:
    member = members.member(members.FakeServer())
    line = queue(Clock())
    place = line.take(Request([member]))
    assert place is not None
    first, second = (asyncio.create_task(line.wait(Request([member]), line._clock() + LONGEST_S)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    place.release()
    (await second).release()
    await asyncio.wait({first})
    assert member.n_asked == 0


async def test_a_place_is_given_back_once_however_often_it_is_said() -> None:
    member = members.member(members.FakeServer())
    line = queue(Clock(), limit=2)
    one, two = line.take(Request([member])), line.take(Request([member]))
    assert one is not None
    assert two is not None
    one.release()
    one.release()
    assert member.n_asked == 1


async def test_the_wait_has_an_end_and_its_message_names_the_setting() -> None:
    member = members.member(members.FakeServer())
    clock = Clock()
    line = queue(clock)
    assert line.take(Request([member]))
    with pytest.raises(EngineBusyError, match=r"remote\.concurrency"):
        await line.wait(Request([member]), clock.now + 0.01)
    assert len(line) == 0


async def test_who_waits_is_sent_away_when_the_last_member_fails() -> None:
    server = members.FakeServer()
    member = members.member(server)
    line = queue(Clock())
    place = line.take(Request([member]))
    assert place is not None
    waiting = asyncio.create_task(line.wait(Request([member]), line._clock() + LONGEST_S))
    await asyncio.sleep(0)
    server.backoff.failed(DEAD, slow=True)
    place.release()
    with pytest.raises(EngineUnavailableError, match="dead"):
        await waiting


async def test_a_member_that_comes_back_takes_those_who_wait() -> None:
    a, b = (members.member(members.FakeServer(name)) for name in "ab")
    line = queue(Clock())
    b.failed(DEAD)
    assert line.take(Request([a, b]))
    waiting = asyncio.create_task(line.wait(Request([a, b]), line._clock() + LONGEST_S))
    await asyncio.sleep(0)
    b.came_back()
    line.changed()
    assert (await waiting).member is b


async def test_who_cannot_be_served_holds_up_nobody_who_waits_for_other_members() -> None:
    a, b = (members.member(members.FakeServer(name)) for name in "ab")
    line = queue(Clock())
    places = [line.take(Request([member])) for member in (a, b)]
    first, second = (asyncio.create_task(line.wait(Request([member]), line._clock() + LONGEST_S)) for member in (a, b))
    await asyncio.sleep(0)
    for place, waiting, member in zip(reversed(places), (second, first), (b, a), strict=True):
        assert place is not None
        assert not waiting.done()
        place.release()
        given = await asyncio.wait_for(waiting, 5)
        assert given.member is member
    assert len(line) == 0


async def test_who_may_have_the_last_place_is_served_before_one_ahead_of_him_who_may_not() -> None:
    clock, member = Clock(), members.member(members.FakeServer())
    line, serving = queue(clock, limit=2), [member]
    kept, place = line.take(Request(serving)), line.take(Request(serving))
    assert kept is not None
    assert place is not None
    tasks = []
    for request, after_s in ((Request(serving, BATCH), 0.0), (Request(serving, expected_s=1e6), 5.5)):
        clock.now += after_s
        tasks.append(asyncio.create_task(line.wait(request, clock.now + LONGEST_S)))
        await asyncio.sleep(0)
    place.release()
    urgent = await asyncio.wait_for(tasks[1], 5)
    assert not tasks[0].done()
    kept.release()  # one place is taken, the last one is free
    assert (len(line), member.n_asked) == (1, 1)
    urgent.release()
    (await asyncio.wait_for(tasks[0], 5)).release()
    assert member.n_asked == 0


async def test_a_document_leaves_a_server_that_said_nothing_for_long() -> None:
    clock = Clock()
    servers = [members.FakeServer(name) for name in "ab"]
    a, b = (members.member(server, clock=clock) for server in servers)
    line = queue(clock)
    request = Request([a, b], session="s")
    for server in servers:
        server.hold()

    async def given_up_after(seconds: float) -> Member:
        place = line.take(request)
        assert place is not None
        waiting = asyncio.create_task(Attempt(place, asking.fim(), clock).first())
        await asyncio.sleep(0)
        clock.now += seconds
        waiting.cancel()
        await asyncio.wait({waiting})
        return place.member

    assert [await given_up_after(seconds) for seconds in (0.1, 0.1, 60.0)] == [a, a, a]
    assert await given_up_after(0.1) is b
    assert (a.n_asked, b.n_asked) == (0, 0)


@pytest.mark.parametrize("seed", range(20))
async def test_whatever_happens_places_never_exceed_the_limit_and_all_come_back(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - a test's own choices
    all_members = [members.member(members.FakeServer(name), weight=draw.choice([0.5, 1, 2])) for name in "abc"[: draw.randint(1, 3)]]
    limit, clock = draw.randint(1, 3), Clock()
    line = queue(clock, limit=limit)
    taken: set[Place] = set()
    n_served = 0

    async def ask(**how: Any) -> None:
        nonlocal n_served
        request = Request(all_members, **how)
        place = line.take(request) or await line.wait(request, clock.now + 1_000)
        assert place not in taken
        taken.add(place)
        n_served += 1
        try:
            for _ in range(draw.randint(0, 5)):
                await asyncio.sleep(0)
        finally:
            taken.discard(place)
            place.release()

    tasks: list[asyncio.Task[None]] = []
    n_cancelled = 0
    for _ in range(150):
        clock.now += draw.random()
        tasks.append(
            asyncio.create_task(ask(priority=draw.choice(list(Priority)), expected_s=draw.random() * 5, session=draw.choice("xyz")))
        )
        if draw.random() < 0.3:
            n_cancelled += draw.choice(tasks).cancel()
        for _ in range(draw.randint(0, 2)):
            await asyncio.sleep(0)
        held = {member: sum(place.member is member for place in taken) for member in all_members}
        assert all(held[member] <= member.n_asked <= limit for member in all_members)
    done, pending = await asyncio.wait(tasks, timeout=10)
    assert not pending
    assert sum(task.cancelled() for task in done) <= n_cancelled
    assert all(task.cancelled() or task.exception() is None for task in done)
    assert [member.n_asked for member in all_members] == [0] * len(all_members)
    assert len(line) == 0
    assert n_served >= len(tasks) - n_cancelled


@pytest.mark.parametrize("limit", [1, 3])
async def test_nothing_starves_beside_a_stream_of_urgent_asks(limit: int) -> None:
    """Two urgent asks come for each that is served: only ageing lets the others through."""
    clock, order = Clock(), []
    member = members.member(members.FakeServer())
    line = queue(clock, limit=limit)
    place, *_ = [line.take(Request([member])) for _ in range(limit)]
    waiting = {
        name: asyncio.create_task(in_line(line, Request([member], Priority[name]), order, name))
        for name in ("BATCH", "WARM_UP", "LOOK_AHEAD")
    }
    urgent = []
    for _ in range(40):
        urgent += [asyncio.create_task(in_line(line, Request([member]), order, "")) for _ in range(2)]
        await asyncio.sleep(0)
        clock.now += 0.5
        assert place is not None
        place.release()
        running = [task for task in (*waiting.values(), *urgent) if task.get_name() != "over"]
        done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        (task,) = done
        task.set_name("over")
        place = task.result()
    assert [name for name in order if name] == ["LOOK_AHEAD", "WARM_UP", "BATCH"]
    assert member.n_asked == limit
    for task in urgent:
        task.cancel()
    await asyncio.wait(urgent)
