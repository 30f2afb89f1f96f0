"""Which generations run: one for a document, as long as somebody may want it."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from monkeycode_lsp import prompt, stops
from monkeycode_lsp.domain import Scope
from monkeycode_lsp.engines.scripted import Answer, ScriptedEngine
from monkeycode_lsp.generation import Request
from monkeycode_lsp.generations import GRACE_S, MOST_RUNNING, Generations
from monkeycode_lsp.recall.table import Table
from tests.unit.places import at
from tests.unit.virtual import now, on_virtual_time

SCOPE = Scope("engine", "settings", "")
URI = "file:///w/app.py"


class Running:
    """Generations of an engine that takes its time."""

    def __init__(self, *chunks, delay_s=1.0):
        self.engine = ScriptedEngine([Answer(chunks=("", *chunks), delay_ms=delay_s * 1e3)])
        self.finished = []
        self.table = Table()
        self.generations = Generations(self.engine, self.table, lambda uri, generation: self.finished.append((uri, generation.text)))

    def start(self, marked, uri=URI, *, background=False):
        window = at(marked)
        rendered = prompt.render(window, (), prompt.by_name("qwen2.5-coder"), max_tokens=9, session=uri)
        request = Request(rendered, window, stops.plan(window, "auto"))
        return self.generations.start(uri, request, SCOPE, background=background)


@on_virtual_time
async def test_one_runs_for_a_document_the_newest():
    running = Running("x")
    one, other = running.start("a = ‸"), running.start("b = ‸", "file:///w/other.py")
    await asyncio.sleep(0.1)
    newer = running.start("c = ‸")
    await asyncio.sleep(0.1)
    assert (one.running, other.running, newer.running) == (False, True, True)
    await asyncio.sleep(1)
    assert running.finished == [(URI, ""), ("file:///w/other.py", "x"), (URI, "x")]


@on_virtual_time
async def test_one_that_has_ended_hides_nothing_that_is_finished():
    running = Running("x")
    running.start("a = ‸")
    await asyncio.sleep(2)
    assert running.finished == [(URI, "x")]
    assert running.table.find(URI, SCOPE, at("a = ‸")) is None


@on_virtual_time
async def test_however_many_documents_there_are_not_too_many_run_at_once():
    running = Running("x")
    begun = []
    for n in range(MOST_RUNNING + 3):
        begun.append(running.start("a = ‸", f"file:///w/{n}.py"))
        await asyncio.sleep(0.001)
    assert [generation.running for generation in begun] == [False] * 3 + [True] * MOST_RUNNING
    await running.generations.aclose()
    assert running.engine.n_running == 0


async def waits(generation, for_s):
    await generation.wait(now() + for_s)


@on_virtual_time
async def test_one_that_nobody_wants_any_more_ends_after_a_moment():
    running = Running("x")
    generation = running.start("a = ‸")
    await waits(generation, 0.1)
    running.generations.unwanted_soon(generation)
    await asyncio.sleep(GRACE_S - 0.01)
    assert generation.running
    await asyncio.sleep(0.02)
    assert not generation.running


@pytest.mark.parametrize("wanted_for_s", [0.01, 0.5])
@on_virtual_time
async def test_one_that_is_wanted_again_goes_on_even_if_that_was_short(wanted_for_s):
    running = Running("x")
    generation = running.start("a = ‸")
    running.generations.unwanted_soon(generation)
    await asyncio.sleep(0.05)
    await waits(generation, wanted_for_s)  # and takes what there is of it
    await asyncio.sleep(1)
    assert running.finished == [(URI, "x")]


@on_virtual_time
async def test_an_ask_that_leaves_does_not_stop_what_another_one_waits_for():
    running = Running("x")
    generation = running.start("a = ‸")
    waiting = asyncio.create_task(waits(generation, 0.02))
    await asyncio.sleep(0)
    running.generations.unwanted_soon(generation)
    await waiting
    await asyncio.sleep(1)
    assert running.finished == [(URI, "x")]


@pytest.mark.parametrize(("background", "goes_on"), [(True, True), (False, False)])
@on_virtual_time
async def test_what_is_shown_here_keeps_only_what_was_begun_ahead_of_time_for_it(background, goes_on):
    running = Running("x")
    generation = running.start("a = foo‸", background=background)
    await asyncio.sleep(0.1)
    running.generations.leave_astray(URI, SCOPE, at("a = f‸"), coming="oo")
    await asyncio.sleep(0.1)
    assert generation.running is goes_on
    running.generations.leave_astray(URI, SCOPE, at("a = f‸"), coming="old")
    await asyncio.sleep(0.1)
    assert not generation.running


@on_virtual_time
async def test_what_somebody_waits_for_stays_when_way_is_made():
    running = Running("x")
    ahead, wanted = running.start("a = ‸", background=True), running.start("b = ‸", "file:///w/other.py", background=True)
    adopted = running.generations.adopt("file:///w/other.py", SCOPE, at("b = ‸"))
    assert adopted is not None
    assert adopted[0] is wanted
    running.generations.make_way()
    await asyncio.sleep(0.1)
    assert (ahead.running, wanted.running) == (False, True)
    await running.generations.aclose()


@on_virtual_time
async def test_another_engine_model_or_setting_is_not_adopted():
    running = Running("x")
    generation = running.start("a = ‸")
    other = msgspec.structs.replace(SCOPE, settings="others")
    assert running.generations.adopt(URI, other, at("a = ‸")) is None
    await asyncio.sleep(0.1)
    assert not generation.running


@on_virtual_time
async def test_nobody_finds_one_that_runs_no_more_and_is_not_remembered_yet():
    seen = []
    running = Running("x")
    told = running.engine.stream

    async def stream(prompt):
        async for chunk in told(prompt):
            if chunk.finish is not None:  # next in line after this step of the generation, before its task's callbacks
                asyncio.get_running_loop().call_soon(lambda: seen.append((one.running, len(running.finished))))
            yield chunk

    running.engine.stream = stream
    one = running.start("a = ‸")
    await asyncio.sleep(2)
    assert seen == [(False, 1)]


@pytest.mark.parametrize(("finish", "text"), [("stop", "total += 1"), ("length", "total += 1\n    return total")])
@on_virtual_time
async def test_a_last_line_without_its_end_is_judged_if_it_is_whole(finish, text):
    running = Running()
    running.engine = ScriptedEngine([Answer(chunks=("total += 1", "\n    return total"), finish=finish)])
    running.generations = Generations(
        running.engine, running.table, lambda uri, generation: running.finished.append((uri, generation.text))
    )
    running.start("def f(total):\n    ‸\n    return total\n")
    await asyncio.sleep(1)
    assert running.finished == [(URI, text)]
