"""The pool under random asks, cancels and servers, on a clock of its own: what must hold whatever happens."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field

import msgspec
from hypothesis import HealthCheck, given
from hypothesis import settings as budget
from hypothesis import strategies as st

from monkeycode_lsp.domain import Chunk, Finish, Priority
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.engines.remote.backoff import Backoff
from monkeycode_lsp.engines.remote.endpoint import SLOW_S
from monkeycode_lsp.engines.remote.pool import hedging
from monkeycode_lsp.engines.remote.pool.latency import N_ENOUGH
from monkeycode_lsp.engines.remote.pool.member import LEFT_OUT_S
from monkeycode_lsp.engines.remote.pool.probing import USED_S
from monkeycode_lsp.engines.remote.stream.relay import Relay
from monkeycode_lsp.errors import (
    ContextOverflowError,
    EngineBusyError,
    EngineError,
    EngineFaultError,
    EngineRefusedError,
    EngineUnavailableError,
    StreamBrokenError,
)
from tests.unit.engines.remote import asking, members
from tests.unit.virtual import now, on_virtual_time

TIMEOUT_S = 10.0
STALL_S = 3.0
MOST_SAVED = 5.0
LEAST_CLASS_GAP_S = 0.2 * TIMEOUT_S
"""So long what nobody waits for leaves the last place to others, for each class."""
LONGEST_RETRY_AFTER_S = 20.0
IN_USE_AGAIN_S = 10.0
"""So soon after its return a server is used again."""
ANSWER_S = 0.6
A_MOMENT_S = 0.001
MOST_S = 2.0 * TIMEOUT_S + 1.0
"""Its turn in the line, and then its first piece."""
N_DOCUMENTS = 4


class Mood(msgspec.Struct, frozen=True):
    """How a server takes asks."""

    first_s: float = 0.02
    """Until the first piece, or the error instead of it."""
    error: EngineError | None = None
    n_said: int = 0
    """Pieces before the error."""
    pause_s: float = 0.0
    """Between pieces."""
    is_there: bool = True
    """Whether a look at it goes well."""


GOOD = Mood()
GONE = Mood(0.0, EngineUnavailableError("refuses connections"), is_there=False)
CUT = Mood(error=StreamBrokenError("cut in the middle"), n_said=2)
CLOSED = EngineUnavailableError("closed")
MOODS = (
    GOOD,
    Mood(0.0),
    Mood(0.6),
    Mood(3.0),
    Mood(pause_s=0.4),
    GONE,
    Mood(1.5, EngineUnavailableError("cannot be reached"), is_there=False),
    Mood(TIMEOUT_S, EngineUnavailableError("hangs"), is_there=False),
    Mood(error=StreamBrokenError("hangs in the middle"), n_said=1, pause_s=STALL_S),
    Mood(error=StreamBrokenError("cut before text")),
    CUT,
    Mood(error=EngineFaultError("500")),
    Mood(error=EngineRefusedError("401")),
    Mood(error=EngineRefusedError("404")),
    Mood(error=EngineBusyError("503")),
    Mood(error=EngineBusyError("429", retry_after_s=0.7)),
    Mood(error=EngineBusyError("429 for long", retry_after_s=LONGEST_RETRY_AFTER_S)),
    Mood(error=ContextOverflowError("too long")),
)


@dataclass(eq=False)
class Asked:
    """One ask and how it went."""

    number: int
    priority: Priority
    is_any: bool
    began: float = 0.0
    model: str = ""
    """Of which the prompt was rendered; empty: any."""
    first_at: float | None = None
    ended: float | None = None
    text: str = ""
    finishes: list = field(default_factory=list)
    error: EngineError | None = None
    open: int = 0
    """Streams that are open for it."""
    n_cancels: int = 0
    task: asyncio.Task | None = None

    @property
    def echo(self):
        return f"<{self.number}>" * 2


class Server:
    """An endpoint without a network: says what it is asked, in its mood.  Checks what must hold as it goes."""

    def __init__(self, name, model, world):
        self.name = name
        self.mood = GOOD
        self.backoff = Backoff(now)
        self.model = Model(model, None, f"remote:{name}", context_tokens=4096)
        self.running = []
        """When each open stream was opened."""
        self.is_closed = False
        self._world = world
        self._relay = Relay()
        self._is_known = False

    async def ready(self):
        if not self._is_known:
            self.backoff.check()
            began = now()
            await asyncio.sleep(self.mood.first_s)
            if self.mood.error is not None and not self.mood.n_said:
                self.backoff.failed(self.mood.error, slow=now() - began > SLOW_S)
                raise self.mood.error
            self._is_known = True
        return self.model

    def stream(self, asked):
        return self._relay.stream(self._generate(asked))

    def keep_warm(self):
        pass

    async def look(self, _path):
        await asyncio.sleep(self.mood.first_s)
        if not self.mood.is_there or isinstance(self.mood.error, EngineRefusedError | EngineBusyError):
            raise self.mood.error
        return b""

    async def aclose(self):
        self.is_closed = True
        await self._relay.aclose()

    async def _generate(self, prompt):
        asked = self._world.asks[int(prompt.prefix)]
        self._world.opened(self, asked)
        opened = now()
        self.running.append(opened)
        asked.open += 1
        try:
            self.backoff.check()
            mood = self.mood
            await asyncio.sleep(mood.first_s)
            pieces = [Chunk(f"<{prompt.prefix}>"), Chunk(f"<{prompt.prefix}>"), Chunk("", finish=Finish.STOP)]
            for piece in pieces[: mood.n_said] if mood.error is not None else pieces:
                if piece is not pieces[0]:
                    await asyncio.sleep(mood.pause_s)
                self.backoff.succeeded()
                yield piece
            if mood.error is not None:
                await asyncio.sleep(mood.pause_s)
                raise mood.error
        except EngineError as exc:
            if isinstance(exc, EngineUnavailableError):
                self._is_known = False
            if isinstance(exc, EngineUnavailableError | EngineBusyError):
                self.backoff.failed(exc, slow=now() - opened > SLOW_S)
            elif isinstance(exc, EngineRefusedError) and not isinstance(exc, ContextOverflowError):
                self.backoff.failed(exc)
            raise
        finally:
            self.running.remove(opened)
            asked.open -= 1


class World:
    """An engine of such servers, and those who ask it."""

    def __init__(self, models, *, metered=(), weights=(), hedge="auto", retries=2, concurrency=5):
        self.servers = [Server(f"s{n}", model, self) for n, model in enumerate(models)]
        self.asks = []
        self.broken = []
        self.told = []
        self.hedge = hedge
        self.concurrency = concurrency
        self.metered = {server for server, costs in zip(self.servers, metered, strict=False) if costs}
        self.is_closing = False
        self.saved = 1.0
        """Second requests that may still be made: each ask adds a share of one."""
        self.engine = members.engine(
            *self.servers,
            told=self.told,
            endpoints={
                server.name: {"metered": "yes" if server in self.metered else "auto", "weight": weight}
                for server, weight in zip(self.servers, [*weights, *[1.0] * len(models)], strict=False)
            },
            hedge=hedge,
            retries=retries,
            concurrency=concurrency,
            timeout_ms=round(TIMEOUT_S * 1e3),
            stall_ms=round(STALL_S * 1e3),
        )
        pool = self.engine._pool()
        for timed in (*pool.members, pool._prober, pool._dispatcher, pool._dispatcher.admission):
            timed._clock = now

    def opened(self, server, asked):
        """A stream is opened; nothing of it was counted yet."""
        n_running = len(server.running) + 1
        if n_running > self.concurrency:
            self.broken.append(f"{n_running} streams at {server.name}")
        if asked.first_at is not None:
            self.broken.append(f"{asked} was asked again after its first piece")
        if asked.model not in ("", plain(server.model.name)):
            self.broken.append(f"{asked} was given to {server.model.name}")
        if asked.priority is Priority.INTERACTIVE:
            self._watch_hedges(server, asked)
        elif asked.open:
            self.broken.append(f"{asked} was asked twice, and nobody waits for it")
        elif now() - asked.began < LEAST_CLASS_GAP_S * asked.priority:
            n_older = sum(opened < now() for opened in server.running)
            if n_older + 1 > max(1, self.concurrency - 1):
                self.broken.append(f"{asked} took the last place at {server.name}")

    def _watch_hedges(self, server, asked):
        if not asked.open:
            self.saved = min(MOST_SAVED, self.saved + hedging.SHARE)
            return
        self.saved -= 1.0
        if self.saved < -1.0:  # an ask that is given up at once may have added to it, and is not seen here
            self.broken.append("more than a tenth of the asks were asked twice")
        if asked.open > 1 or self.hedge == "off" or (self.hedge == "auto" and server in self.metered):
            self.broken.append(f"{asked} was asked beside {asked.open} others, of {server.name} too")

    def ask(self, number=0, *, priority=Priority.INTERACTIVE, is_any=False):
        asked = Asked(len(self.asks), priority, is_any, began=now())
        self.asks.append(asked)
        asked.task = asyncio.create_task(self._ask(asked, f"d{number % N_DOCUMENTS}"))
        return asked

    async def _ask(self, asked, session):
        try:
            fingerprint = ""
            if not asked.is_any and not self.is_closing:
                model = await self.engine.ready()
                asked.model, fingerprint = plain(model.name), model.fingerprint
            if self.is_closing:  # whoever closes an engine sees to it that it is not asked any more
                asked.error = CLOSED
                return
            asked.began = now()
            prompt = asking.plain(str(asked.number), priority=asked.priority, session=session, model=fingerprint)
            async with aclosing(self.engine.stream(prompt)) as chunks:
                async for chunk in chunks:
                    asked.first_at = now() if asked.first_at is None else asked.first_at
                    asked.text += chunk.text
                    asked.finishes.append(chunk.finish is not None)
        except EngineError as exc:
            asked.error = exc
        finally:
            asked.ended = now()
            if asked.open and asked.first_at is None and asked.n_cancels < 2:  # who is cancelled twice cannot wait
                self.broken.append(f"{asked} was over before its streams were")

    def outstanding(self):
        return [asked for asked in self.asks if not asked.task.done()]

    async def over(self):
        """Wait until all asks are."""
        if waiting := [asked.task for asked in self.outstanding()]:
            await asyncio.wait(waiting)

    def check(self):
        """What must hold when all asks are over."""
        assert self.broken == []
        for asked in self.asks:
            assert asked.task.cancelled() or asked.task.exception() is None
            assert asked.echo.startswith(asked.text)
            if not asked.task.cancelled() and asked.error is None:
                assert asked.text == asked.echo
                assert asked.finishes == [False, False, True]
            said_at = asked.ended if asked.first_at is None else asked.first_at
            assert said_at is None or said_at - asked.began < MOST_S * (1.5 if asked.is_any else 1.0)
        assert len(set(self.told)) == len(self.told) <= len(self.servers)
        for member in self.engine.members:
            assert member.n_asked == 0
            assert member.server.running == []

    async def end(self):
        """Closed twice and at once, nothing is left."""
        self.is_closing = True
        began = now()
        await self.engine.aclose()
        await self.engine.aclose()
        assert now() - began < A_MOMENT_S
        assert len(self.engine._pool()._dispatcher.admission) == 0
        assert all(server.is_closed for server in self.servers)
        await self.over()
        await asyncio.sleep(A_MOMENT_S)
        assert len(asyncio.all_tasks()) == 1
        self.check()


def plain(name):
    return name.rpartition("/")[2].lower()


# What a script can do


async def ask(world, number):
    world.ask(number)


async def ask_many(world, number):
    for n in range(number % 12):
        world.ask(number + n)


async def ask_for_any_model(world, number):
    world.ask(number, is_any=True)


async def ask_ahead(world, number):
    for n in range(number % 3 + 1):
        world.ask(number + n, priority=list(Priority)[1 + (number + n) % 3])


async def slow_down(world, number):
    """Asks that each would rather be asked of another server too."""
    for server in world.servers[number % 2 :]:
        server.mood = Mood(ANSWER_S)
    for n in range(number % 40):
        world.ask(number + n)
        await asyncio.sleep(0.02)


async def cancel(world, number):
    if waiting := world.outstanding():
        asked = waiting[-1 - number % len(waiting)]
        for _ in range(number % 3 + 1):
            asked.n_cancels += 1
            asked.task.cancel()
            for _ in range(number % 5):
                await asyncio.sleep(0)
        await asyncio.wait({asked.task}, timeout=A_MOMENT_S)
        if not asked.task.done():
            world.broken.append(f"{asked} went on after it was cancelled")
        await asyncio.sleep(A_MOMENT_S)
        if asked.open:
            world.broken.append(f"a stream of {asked} was left open")


async def cancel_one_after_the_other(world, number):
    """So that one gets a place while it is given up."""
    for asked in world.outstanding()[: number % 10]:
        asked.n_cancels += 1
        asked.task.cancel()
        for _ in range(number // 10 % 10):
            await asyncio.sleep(0)


async def change(world, number):
    world.servers[number % len(world.servers)].mood = MOODS[number // 8 % len(MOODS)]


async def go(world, number):
    world.servers[number % len(world.servers)].mood = GONE


async def cut(world, number):
    world.servers[number % len(world.servers)].mood = CUT
    for n in range(number % 4):
        world.ask(number + n)


async def come_back(world, _number):
    for server in world.servers:
        server.mood = GOOD


RARE = (ask_ahead, ask_for_any_model, slow_down, cut, go, come_back)
acts = st.sampled_from((ask,) * 4 + (ask_many,) * 2 + (change,) * 4 + (cancel, cancel_one_after_the_other) * 2 + RARE)
gaps = st.sampled_from((0.0, 0.0, 0.005, 0.02, 0.1, 0.3, 1.0, 4.0))
scripts = st.lists(st.tuples(acts, st.integers(0, 999), gaps), min_size=10, max_size=60)
worlds = st.fixed_dictionaries(
    {
        "models": st.lists(st.sampled_from(("qwen", "qwen", "org/Qwen", "other")), min_size=1, max_size=4),
        "metered": st.lists(st.booleans(), max_size=4),
        "weights": st.lists(st.sampled_from((0.5, 1.0, 3.0)), max_size=4),
        "hedge": st.sampled_from(("auto", "auto", "on", "off")),
        "retries": st.integers(0, 3),
        "concurrency": st.sampled_from((1, 2, 3, 5)),
    }
)


@given(script=scripts, how=worlds, knows_its_pace=st.booleans(), closes_early=st.booleans())
@budget(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_happens_each_ask_ends_in_its_own_text_or_an_error_and_nothing_is_left(script, how, knows_its_pace, closes_early):
    @on_virtual_time
    async def session():
        world = World(**how)
        if knows_its_pace:
            for n in range(N_ENOUGH * len(world.servers) * 2):
                world.ask(n)
                await asyncio.sleep(0.01)
            await world.over()
        for act, number, gap_s in script:
            await act(world, number)
            if gap_s:
                await asyncio.sleep(gap_s)
        if not closes_early:
            await world.over()
            await asyncio.sleep(LEFT_OUT_S + USED_S + LONGEST_RETRY_AFTER_S)
            assert len(asyncio.all_tasks()) == 1
            await come_back(world, 0)
            last = world.ask()
            await world.over()
            assert last.text == last.echo
        await world.end()

    session()


@given(
    deaths=st.lists(st.tuples(st.sampled_from((0, 1)), st.sampled_from((0.3, 2.0, 7.0))), min_size=1, max_size=4),
    pace_s=st.sampled_from((0.1, 0.3, 0.7)),
    concurrency=st.sampled_from((1, 2, 5)),
    hedge=st.sampled_from(("auto", "off")),
)
@budget(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_while_one_of_two_is_there_every_ask_is_answered(deaths, pace_s, concurrency, hedge):
    @on_virtual_time
    async def session():
        world = World(["qwen", "qwen"], concurrency=concurrency, hedge=hedge)

        async def type_for(seconds):
            for n in range(round(seconds / pace_s)):
                world.ask(n)
                await asyncio.sleep(pace_s)

        for who, away_s in deaths:
            world.servers[who].mood = GONE
            await type_for(away_s)
            world.servers[who].mood = GOOD
            await type_for(IN_USE_AGAIN_S)
            assert all(member.is_good for member in world.engine.members)
        await world.over()
        assert [asked.error for asked in world.asks if asked.error is not None] == []
        await world.end()

    session()


@given(
    load=st.lists(st.tuples(st.sampled_from(tuple(Priority)), st.sampled_from((0.3, 0.6, 1.0))), min_size=20, max_size=100),
    n_servers=st.sampled_from((1, 2, 3)),
    concurrency=st.sampled_from((1, 2, 4)),
    share=st.sampled_from((0.5, 0.8, 0.95)),
)
@budget(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_while_there_are_places_for_all_nobody_starves(load, n_servers, concurrency, share):
    @on_virtual_time
    async def session():
        world = World(["qwen"] * n_servers, concurrency=concurrency, hedge="off")
        for server in world.servers:
            server.mood = Mood(ANSWER_S)
        await world.engine.ready()
        await asyncio.sleep(1)
        n_background_places = n_servers * max(1, concurrency - 1)
        for n, (priority, part) in enumerate(load):
            world.ask(n, priority=priority)
            await asyncio.sleep(ANSWER_S / n_background_places / share * (0.5 + part))
        await world.over()
        assert [asked.error for asked in world.asks if asked.error is not None] == []
        await world.end()

    session()


@given(
    ahead=st.lists(st.tuples(st.sampled_from(tuple(Priority)[1:]), st.floats(0.0, 3.0)), min_size=1, max_size=4),
    n_servers=st.sampled_from((1, 2, 3)),
    concurrency=st.sampled_from((2, 3, 5)),
)
@budget(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_nobody_waits_for_gets_its_turn_beside_a_user_who_never_stops(ahead, n_servers, concurrency):
    @on_virtual_time
    async def session():
        world = World(["qwen"] * n_servers, concurrency=concurrency, hedge="off")
        for server in world.servers:
            server.mood = Mood(ANSWER_S)
        await world.engine.ready()
        await asyncio.sleep(1)

        async def type_for(seconds):
            end = now() + seconds
            while now() < end:
                world.ask(len(world.asks))
                await asyncio.sleep(ANSWER_S / (n_servers * (concurrency - 1)))

        await type_for(2)
        for priority, pause_s in ahead:
            world.ask(priority=priority)
            await type_for(pause_s)
        await type_for(TIMEOUT_S)
        await world.over()
        assert [asked.error for asked in world.asks if asked.error is not None] == []
        await world.end()

    session()
