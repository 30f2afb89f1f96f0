"""Endpoints that come and go at random, and the engine in their place, on a clock of its own: what must hold whatever happens."""

from __future__ import annotations

import asyncio
import math
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass

from hypothesis import HealthCheck, given
from hypothesis import settings as budget
from hypothesis import strategies as st

from monkeycode_lsp.domain import Chunk, Finish, Plain, Prompt
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.engines.failover import KEPT_S, USED_S, Failover
from monkeycode_lsp.errors import EngineError, EngineUnavailableError, ModelMissingError, StreamBrokenError
from tests.unit.virtual import now, on_virtual_time

GONE = EngineUnavailableError("Nothing answers at http://h.")
IN_USE_AGAIN_S = 10.0
"""So soon after their return the endpoints answer, while somebody asks."""
NOTICED_S = 10.0
"""So soon the stand-in answers, where there is one."""
LONGEST_LOOK_S = 3.0
MAKING_S = 2.0
PAUSE_S = 0.1


class Threads(ThreadPoolExecutor):
    """What a thread would do is done after some time of the loop's own clock."""

    def __init__(self, takes_s):
        super().__init__(1)
        self._takes_s = takes_s

    def submit(self, function, /, *args, **kwargs):
        future = Future()
        asyncio.get_running_loop().call_later(self._takes_s, self._run, future, function, args, kwargs)
        return future

    def _run(self, future, function, args, kwargs):
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(function(*args, **kwargs))
        except EngineError as exc:
            future.set_exception(exc)


@dataclass(eq=False)
class Asked:
    """One ask and how it went."""

    model: str = ""
    text: str = ""
    error: EngineError | None = None
    task: asyncio.Task | None = None


class Answering:
    """An engine that says its name, and sees to it that it is asked only for what is its own, and not closed while it answers."""

    def __init__(self, name, world):
        self.name = name
        self.n_running = 0
        self.is_closed = False
        self.world = world

    def fault(self):
        """The error to raise now; None: there is none."""
        raise NotImplementedError

    async def ready(self):
        await asyncio.sleep(0.05)
        if (error := self.fault()) is not None:
            raise error
        return Model(self.name, None, self.name)

    async def stream(self, prompt):
        if self.is_closed and not self.world.is_closing:
            self.world.broken.append(f"{self.name} was closed and is asked")
        if prompt.model != self.name:
            self.world.broken.append(f"{self.name} is asked for an answer of {prompt.model}")
        self.n_running += 1
        try:
            for n in range(prompt.max_tokens):
                if (error := self.fault()) is not None:
                    raise StreamBrokenError("Broken off.") if n else error
                yield Chunk(self.name[n % len(self.name)])
                await asyncio.sleep(PAUSE_S)
            yield Chunk("", finish=Finish.STOP)
        finally:
            self.n_running -= 1

    async def aclose(self):
        if self.n_running and not self.world.is_closing:
            self.world.broken.append(f"{self.name} was closed while it answered")
        self.is_closed = True
        await asyncio.sleep(0.5)


class Endpoints(Answering):
    """They can go and come back.  Once they have told their model it is known; those that hang let others wait."""

    def __init__(self, world):
        super().__init__("remote", world)
        self.is_there = True
        self.back_at = -math.inf
        self.hangs = self.is_known = False
        self.n_lost = 0
        """Answers that are lost although they are there."""

    def fault(self):
        if self.is_there and self.n_lost:
            self.n_lost -= 1
            return GONE
        return None if self.is_there else GONE

    async def ready(self):
        if not self.is_known:
            await self._wait()
            await super().ready()
            self.is_known = True
        return Model(self.name, None, self.name)

    async def reachable(self):
        is_there = self.is_there
        await self._wait()
        return is_there

    async def _wait(self):
        await asyncio.sleep(LONGEST_LOOK_S if self.hangs and not self.is_there else 0.01)


class StandIn(Answering):
    def __init__(self, world, error):
        super().__init__("local", world)
        self.error = error

    def fault(self):
        return self.error


class World:
    """The engine and those who ask it."""

    def __init__(self, *, missing, error, making_s):
        asyncio.get_running_loop().set_default_executor(Threads(making_s))
        self.broken, self.told, self.asks, self.made = [], [], [], []
        self.n_tries = self.n_outages = 0
        self.is_closing = False
        self.endpoints = Endpoints(self)
        self._missing, self._error = missing, error
        self.can_stand_in = missing is None and error is None
        self.engine = Failover(self.endpoints, self._make, notify=self.told.append)

    def _make(self):
        self.n_tries += 1
        if any(not made.is_closed for made in self.made):
            self.broken.append("a second stand-in is made beside the first")
        if len(self.made) >= self.n_outages:
            self.broken.append("more than one stand-in is made for one time that the endpoints are away")
        if self.endpoints.is_there and now() - self.endpoints.back_at > LONGEST_LOOK_S + MAKING_S:
            self.broken.append("a stand-in is made although the endpoints are there")
        if self._missing is not None:
            raise self._missing
        self.made.append(StandIn(self, self._error))
        return self.made[-1]

    def go(self, *, hangs):
        if self.endpoints.is_there:
            self.endpoints.is_there = False
            self.endpoints.hangs = hangs
            self.n_outages += 1

    def come_back(self):
        if not self.endpoints.is_there:
            self.endpoints.is_there = True
            self.endpoints.back_at = now()

    def ask(self, n_pieces=3):
        asked = Asked()
        asked.task = asyncio.create_task(self._ask(asked, n_pieces))
        self.asks.append(asked)
        return asked

    async def _ask(self, asked, n_pieces):
        try:
            asked.model = (await self.engine.ready()).fingerprint
            prompt = Prompt(segments=(Plain("a"),), prefix="a", suffix="", model=asked.model, max_tokens=n_pieces)
            async with aclosing(self.engine.stream(prompt)) as chunks:
                async for chunk in chunks:
                    asked.text += chunk.text
        except EngineError as exc:
            asked.error = exc
        else:
            if asked.text != (asked.model * n_pieces)[:n_pieces]:
                self.broken.append(f"{asked} got another's text")

    def outstanding(self):
        return [asked for asked in self.asks if not asked.task.done()]

    async def type_for(self, seconds):
        end = now() + seconds
        while now() < end:
            self.ask()
            await asyncio.sleep(0.5)

    async def must_be_answered_by(self, name):
        asked = self.ask()
        await asyncio.wait({asked.task})
        if (asked.model, asked.error) != (name, None):
            self.broken.append(f"{asked} should have been answered by {name}")

    async def close(self):
        """In whatever state it is: no task of the engine's is left.  Who closes it has given up his asks before."""
        self.is_closing = True
        waiting = [asked.task for asked in self.outstanding()]
        for task in waiting:
            task.cancel()
        if waiting:
            await asyncio.wait(waiting)
        await self.engine.aclose()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert all(engine.is_closed for engine in (self.endpoints, *self.made))
        assert self.broken == []
        assert [asked.task.exception() for asked in self.asks if not asked.task.cancelled() and asked.task.exception()] == []
        assert len(self.made) <= self.n_outages
        assert len(self.told) <= len(self.made)
        assert self.n_tries <= len(self.made) + 1 + now() / USED_S


async def ask(world, number):
    world.ask(number % 6)


async def ask_for_much(world, number):
    world.ask(2 * number)


async def cancel(world, number):
    if waiting := world.outstanding():
        asked = waiting[number % len(waiting)]
        for _ in range(number % 2 + 1):
            asked.task.cancel()
            await asyncio.sleep(0)
        await asyncio.wait({asked.task}, timeout=PAUSE_S / 2)
        if not asked.task.done():
            world.broken.append(f"{asked} went on after it was cancelled")


async def go(world, number):
    world.go(hangs=number % 4 == 0)


async def come_back(world, _number):
    world.come_back()


async def lose_one(world, _number):
    world.endpoints.n_lost = 1


async def stay_away(world, number):
    world.go(hangs=number % 4 == 0)
    await world.type_for(NOTICED_S)
    if world.can_stand_in:
        await world.must_be_answered_by("local")


async def stay_there(world, _number):
    world.endpoints.n_lost = 0
    world.come_back()
    await world.type_for(IN_USE_AGAIN_S)
    await world.must_be_answered_by("remote")


acts = st.sampled_from((ask,) * 4 + (cancel, go, come_back) * 2 + (lose_one, ask_for_much, stay_away, stay_there))
gaps = st.sampled_from((0.0, 0.02, 0.3, 0.3, 1.0, 4.0, 12.0, KEPT_S - IN_USE_AGAIN_S, KEPT_S, USED_S + 1))


@given(
    script=st.lists(st.tuples(acts, st.integers(0, 99), gaps), min_size=3, max_size=30),
    missing=st.sampled_from((None, None, None, ModelMissingError("No model."))),
    error=st.sampled_from((None, None, None, EngineUnavailableError("No runtime."))),
    making_s=st.sampled_from((0.0, 0.3, MAKING_S)),
)
@budget(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_comes_and_goes_each_ask_is_answered_by_whom_it_was_made_for_and_nothing_is_left(script, missing, error, making_s):
    @on_virtual_time
    async def session():
        world = World(missing=missing, error=error, making_s=making_s)
        for act, number, gap_s in script:
            await act(world, number)
            await asyncio.sleep(gap_s)
        await world.close()

    session()
