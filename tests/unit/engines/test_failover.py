"""The endpoints and the engine in their place: who answers, and when that changes."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import msgspec
import pytest

from monkeycode_lsp.domain import Plain, Prompt
from monkeycode_lsp.engines.counting import Delegating
from monkeycode_lsp.engines.failover import KEPT_S, LONGEST_LOOK_S, USED_S, Failover
from monkeycode_lsp.engines.scripted import Answer, ScriptedEngine
from monkeycode_lsp.errors import EngineBusyError, EngineUnavailableError, ModelMissingError, StreamBrokenError
from tests.unit.virtual import now, on_virtual_time

GONE = EngineUnavailableError("Nothing answers at http://h.", remedy="Start the server there.")


class Endpoints(ScriptedEngine):
    """Engines behind an address that can go and come back."""

    def __init__(self):
        super().__init__(["remote"])
        self.is_up = True
        self.knows_it_is_down = True
        self.n_looks = 0
        self.n_closed = 0

    async def ready(self):
        if not self.is_up and self.knows_it_is_down:
            raise GONE
        return await super().ready()

    async def stream(self, prompt):
        if not self.is_up:
            raise GONE
        async for chunk in super().stream(prompt):
            yield chunk

    async def reachable(self):
        self.n_looks += 1
        return self.is_up

    async def aclose(self):
        self.n_closed += 1


class Local(ScriptedEngine):
    """The engine of this machine."""

    def __init__(self, error=None):
        super().__init__([Answer(chunks=("local",), delay_ms=1)])
        self.error = error
        self.n_tried = 0
        self.n_closing = self.n_closed = 0
        self.closes_s = 0.0

    async def ready(self):
        self.n_tried += 1
        if self.error is not None:
            raise self.error
        return msgspec.structs.replace(await super().ready(), name="Small", fingerprint="local")

    async def aclose(self):
        self.n_closing += 1
        await asyncio.sleep(self.closes_s)
        self.n_closed += 1


class Scene:
    def __init__(self, local=None):
        self.endpoints, self.local, self.told, self.n_made = Endpoints(), local or Local(), [], 0
        self.engine = Failover(self.endpoints, self.make, notify=self.told.append)

    def make(self):
        self.n_made += 1
        if isinstance(self.local, Exception):
            raise self.local
        return self.local

    async def ask(self):
        model = await self.engine.ready()
        prompt = Prompt(segments=(Plain("a"),), prefix="a", suffix="", model=model.fingerprint)
        async with aclosing(self.engine.stream(prompt)) as chunks:
            return "".join([chunk.text async for chunk in chunks])


@on_virtual_time
async def test_while_they_answer_nothing_else_is_made():
    scene = Scene()
    assert [await scene.ask() for _ in range(3)] == ["remote"] * 3
    assert (scene.n_made, scene.endpoints.n_looks, scene.told) == (0, 0, [])
    await scene.engine.aclose()
    assert scene.endpoints.n_closed == 1


@on_virtual_time
async def test_when_all_are_gone_the_local_engine_answers_and_the_user_hears_it_once():
    scene = Scene()
    await scene.ask()
    scene.endpoints.is_up = False
    assert [await scene.ask() for _ in range(3)] == ["local"] * 3
    assert scene.told == ["Nothing answers at http://h. Until that is mended, Small answers on this machine."]
    await scene.engine.aclose()
    assert scene.local.n_closed == 1


@on_virtual_time
async def test_who_answers_for_a_model_is_who_serves_it():
    scene = Scene()
    remote = await scene.engine.ready()
    assert scene.engine.answering(remote.fingerprint) is scene.endpoints
    scene.endpoints.is_up = False
    local = await scene.engine.ready()
    assert scene.engine.answering(local.fingerprint) is scene.local
    assert scene.engine.answering(remote.fingerprint) is scene.endpoints
    assert isinstance(scene.engine, Delegating)
    await scene.engine.aclose()


@on_virtual_time
async def test_an_ask_that_finds_out_is_lost_and_the_next_one_is_not():
    scene = Scene()
    await scene.ask()
    scene.endpoints.is_up = scene.endpoints.knows_it_is_down = False
    with pytest.raises(EngineUnavailableError):
        await scene.ask()
    await asyncio.sleep(0.1)
    assert await scene.ask() == "local"
    await scene.engine.aclose()


@on_virtual_time
async def test_they_are_in_use_again_soon_after_their_return_without_an_ask_that_tries():
    scene = Scene()
    scene.endpoints.is_up = False
    assert await scene.ask() == "local"
    for _ in range(20):
        await asyncio.sleep(1)
        assert await scene.ask() == "local"
    scene.endpoints.is_up = True
    await asyncio.sleep(LONGEST_LOOK_S + 0.1)
    assert await scene.ask() == "remote"
    await asyncio.sleep(KEPT_S + 1)
    assert scene.local.n_closed == 1
    await scene.engine.aclose()


@on_virtual_time
async def test_a_stand_in_that_is_needed_again_soon_was_kept():
    scene = Scene()
    scene.endpoints.is_up = False
    await scene.ask()
    scene.endpoints.is_up = True
    await asyncio.sleep(LONGEST_LOOK_S + 0.1)
    assert await scene.ask() == "remote"
    scene.endpoints.is_up = False
    assert await scene.ask() == "local"
    await asyncio.sleep(KEPT_S + 1)
    assert await scene.ask() == "local"
    assert (scene.n_made, scene.local.n_closed, len(scene.told)) == (1, 0, 1)
    await scene.engine.aclose()


@on_virtual_time
async def test_what_the_stand_in_is_saying_is_not_cut_off_by_their_return():
    scene = Scene(Local())
    scene.local._answers = [Answer(chunks=("lo", "cal"), delay_ms=(LONGEST_LOOK_S + 1) * 1e3)]
    scene.endpoints.is_up = False
    model = await scene.engine.ready()
    scene.endpoints.is_up = True
    prompt = Prompt(segments=(Plain("a"),), prefix="a", suffix="", model=model.fingerprint)
    async with aclosing(scene.engine.stream(prompt)) as chunks:
        assert "".join([chunk.text async for chunk in chunks]) == "local"
    assert await scene.ask() == "remote"
    await scene.engine.aclose()


@on_virtual_time
async def test_closing_waits_for_a_stand_in_that_is_just_being_let_go():
    scene = Scene()
    scene.local.closes_s = 5.0
    scene.endpoints.is_up = False
    await scene.ask()
    scene.endpoints.is_up = True
    await asyncio.sleep(LONGEST_LOOK_S + KEPT_S + 1)
    assert (scene.local.n_closed, scene.local.n_closing) == (0, 1)
    await scene.engine.aclose()
    assert scene.local.n_closed == 1
    assert asyncio.all_tasks() == {asyncio.current_task()}


@on_virtual_time
async def test_the_next_stand_in_waits_until_the_last_one_is_closed():
    scene = Scene()
    scene.local.closes_s = 20.0
    scene.endpoints.is_up = False
    await scene.ask()
    scene.endpoints.is_up = True
    await asyncio.sleep(LONGEST_LOOK_S + KEPT_S + 1)
    scene.endpoints.is_up = False
    with pytest.raises(EngineUnavailableError):
        await scene.ask()
    assert (scene.n_made, scene.local.n_closed) == (1, 0)
    await asyncio.wait({scene.engine._looking})
    assert (scene.n_made, scene.local.n_closed) == (2, 1)
    assert await scene.ask() == "local"
    await scene.engine.aclose()


@on_virtual_time
async def test_what_was_made_for_the_stand_in_never_goes_to_the_endpoints():
    scene = Scene()
    scene.endpoints.is_up = False
    model = await scene.engine.ready()
    scene.endpoints.is_up = True
    await asyncio.sleep(LONGEST_LOOK_S + KEPT_S + 1)
    assert scene.local.n_closed == 1
    with pytest.raises(EngineBusyError):
        await anext(scene.engine.stream(Prompt(segments=(Plain("a"),), prefix="a", suffix="", model=model.fingerprint)))
    assert await scene.ask() == "remote"
    await scene.engine.aclose()


@pytest.mark.parametrize("local", [ModelMissingError("No model."), Local(EngineUnavailableError("No runtime."))])
@on_virtual_time
async def test_with_nothing_that_could_stand_in_the_error_is_that_of_the_endpoints_and_each_ask_tries_them(local):
    scene = Scene(local)
    scene.endpoints.is_up = False
    for _ in range(5):
        with pytest.raises(EngineUnavailableError, match="Nothing answers"):
            await scene.ask()
    assert scene.n_made == 1  # not looked for at every key
    scene.endpoints.is_up = True
    assert await scene.ask() == "remote"
    assert scene.told == []
    await scene.engine.aclose()


@pytest.mark.parametrize("may_be_made", [True, False])
@on_virtual_time
async def test_with_nothing_that_could_stand_in_it_is_not_tried_again_within_the_minute(may_be_made):
    local = Local(EngineUnavailableError("No runtime."))
    scene = Scene(local if may_be_made else ModelMissingError("No model."))
    scene.endpoints.is_up = False

    async def asked_in(pause_s):
        await asyncio.sleep(pause_s)
        with pytest.raises(EngineUnavailableError, match="Nothing answers"):
            await scene.ask()
        while scene.engine._looking is not None and scene.engine._stand_in is None:  # noqa: ASYNC110 - a thread, for which this clock does not wait
            await asyncio.sleep(0)

    for pause_s in (0, 0, 1):
        await asked_in(pause_s)
    scene.endpoints.is_up = True  # for a moment
    await asyncio.sleep(LONGEST_LOOK_S + 0.1)
    scene.endpoints.is_up = False
    for pause_s in (0, 1, USED_S - 20):
        await asked_in(pause_s)
    assert (scene.n_made, local.n_tried) == (1, int(may_be_made))
    await scene.engine.aclose()


@on_virtual_time
async def test_an_answer_is_a_use_too():
    scene = Scene()
    scene.endpoints.is_up = False
    model = await scene.engine.ready()
    await asyncio.sleep(0.9 * USED_S)
    prompt = Prompt(segments=(Plain("a"),), prefix="a", suffix="", model=model.fingerprint)
    async with aclosing(scene.engine.stream(prompt)) as chunks:
        assert "".join([chunk.text async for chunk in chunks]) == "local"
    await asyncio.sleep(0.5 * USED_S)
    scene.endpoints.is_up = True
    await asyncio.sleep(LONGEST_LOOK_S + 0.1)
    assert await scene.ask() == "remote", "the looks went on"
    await scene.engine.aclose()


@on_virtual_time
async def test_one_lost_answer_changes_nothing_while_they_can_be_reached():
    scene = Scene()

    async def broken(_prompt):
        raise StreamBrokenError("Broken off.")
        yield

    async def refused(_prompt):
        raise GONE
        yield

    stream = scene.endpoints.stream
    for fault, error in ((broken, StreamBrokenError), (refused, EngineUnavailableError)):
        scene.endpoints.stream = fault
        with pytest.raises(error):
            await scene.ask()
        scene.endpoints.stream = stream
        await asyncio.sleep(0.1)
        assert await scene.ask() == "remote"
    assert scene.n_made == 0
    await scene.engine.aclose()


@on_virtual_time
async def test_nobody_looks_while_nobody_types():
    scene = Scene()
    scene.endpoints.is_up = False
    await scene.ask()
    await asyncio.sleep(2 * USED_S)
    n_looks = scene.endpoints.n_looks
    await asyncio.sleep(10 * USED_S)
    assert scene.endpoints.n_looks == n_looks
    scene.endpoints.is_up = True
    await scene.ask()
    await asyncio.sleep(LONGEST_LOOK_S + 0.1)
    assert await scene.ask() == "remote"
    await scene.engine.aclose()


@on_virtual_time
async def test_a_stand_in_that_cannot_start_is_tried_again_after_a_minute_and_costs_no_time_meanwhile():
    scene = Scene(Local(EngineUnavailableError("No runtime.")))
    scene.endpoints.is_up = False
    began = now()
    for _ in range(30):
        with pytest.raises(EngineUnavailableError, match="Nothing answers"):
            await scene.ask()
        await asyncio.sleep(1)
    assert now() - began == pytest.approx(30)
    scene.local.error = None
    await asyncio.sleep(USED_S - 20)
    for _ in range(2):  # the first one finds out
        try:
            said = await scene.ask()
        except EngineUnavailableError:
            said = ""
    assert said == "local"
    await scene.engine.aclose()


@on_virtual_time
async def test_a_stand_in_is_kept_until_its_last_answer_is_whole():
    scene = Scene()
    scene.local._answers = [Answer(chunks=("lo", "cal"), delay_ms=3 * KEPT_S * 1e3)]
    scene.endpoints.is_up = False
    model = await scene.engine.ready()
    prompt = Prompt(segments=(Plain("a"),), prefix="a", suffix="", model=model.fingerprint)
    async with aclosing(scene.engine.stream(prompt)) as chunks:
        first = await anext(chunks)
        scene.endpoints.is_up = True
        await asyncio.sleep(2 * KEPT_S)
        assert await scene.ask() == "remote"
        assert scene.local.n_closed == 0
        assert first.text + "".join([chunk.text async for chunk in chunks]) == "local"
    await asyncio.sleep(1)
    assert scene.local.n_closed == 1
    await scene.engine.aclose()


@on_virtual_time
async def test_after_its_end_nothing_is_made():
    scene = Scene()
    scene.endpoints.is_up = scene.endpoints.knows_it_is_down = False
    model = await scene.engine.ready()
    await scene.engine.aclose()
    with pytest.raises(EngineUnavailableError):
        await anext(scene.engine.stream(Prompt(segments=(Plain("a"),), prefix="a", suffix="", model=model.fingerprint)))
    await asyncio.sleep(10)
    assert scene.n_made == 0
