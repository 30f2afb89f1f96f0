"""Reading a document before the first ask."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from monkeycode_lsp import config
from monkeycode_lsp.domain import Plain, Priority
from monkeycode_lsp.engines.scripted import Answer, ScriptedEngine
from monkeycode_lsp.read_ahead import REST_S, ReadAhead
from tests.unit.places import ask
from tests.unit.test_completer import Pipeline, until
from tests.unit.virtual import on_virtual_time


class Engine(ScriptedEngine):
    """As the local engine: it can read only."""

    reads = True

    async def ready(self):
        return msgspec.structs.replace(await super().ready(), takes_background=self.reads)


def opened(text, uri="file:///w/app.py"):
    return msgspec.structs.replace(ask("‸" + text).snapshot, uri=uri)


async def model(engine):
    return await engine.ready()


def reading(engine):
    return ReadAhead(engine, config.LookAhead(), Pipeline(engine=engine).completer._requesting.ahead, rest_s=0)


async def test_a_small_document_is_read_whole_and_nobody_waits_for_it():
    engine = Engine([""])
    ahead = reading(engine)
    ahead.opened(opened("import os\n\nx = 1\n"), await model(engine))
    await until(lambda: engine.prompts)
    (read,) = engine.prompts
    assert (read.max_tokens, read.priority, read.session) == (0, Priority.WARM_UP, "file:///w/app.py")
    assert Plain("import os\n\nx = 1\n") in read.segments


async def test_the_half_word_that_the_ask_will_leave_out_is_not_read():
    engine = Engine([""])
    ahead = reading(engine)
    heals = msgspec.structs.replace(await model(engine), heals=True)
    ahead.opened(opened("import os\n\nos.pa"), heals)
    await until(lambda: engine.prompts)
    assert Plain("import os\n\nos.") in engine.prompts[0].segments


async def test_of_many_documents_opened_at_once_the_last_is_read():
    engine = Engine([""])
    ahead = reading(engine)
    for n in range(5):
        ahead.opened(opened("x\n", f"file:///{n}.py"), await model(engine))
    await until(lambda: engine.prompts and not engine.n_running)
    assert [read.session for read in engine.prompts] == ["file:///4.py"]


async def test_a_document_that_is_closed_is_read_no_more_and_another_one_is():
    engine = Engine([Answer(first_delay_ms=60_000)])
    ahead = reading(engine)
    ahead.opened(opened("x\n"), await model(engine))
    await until(lambda: engine.n_running)
    ahead.stop("file:///another.py")
    await asyncio.sleep(0)
    assert engine.n_running == 1
    ahead.stop("file:///w/app.py")
    await until(lambda: not engine.n_running)


@pytest.mark.parametrize("text", ["", "\n  \n", "a long line of code\n" * 2000])
async def test_what_says_nothing_or_does_not_fit_is_not_read(text):
    engine = Engine([""])
    ahead = reading(engine)
    ahead.opened(opened(text), await model(engine))
    await ahead._task
    assert engine.prompts == []


async def test_an_engine_that_would_answer_is_not_bothered():
    engine = Engine([""])
    engine.reads = False
    ahead = reading(engine)
    ahead.opened(opened("x\n"), await model(engine))
    await asyncio.sleep(0.01)
    assert engine.prompts == []


async def test_an_engine_that_fails_costs_nothing():
    engine = Engine([Answer(fault="unavailable")])
    ahead = reading(engine)
    ahead.opened(opened("x\n"), await model(engine))
    await until(lambda: engine.prompts and not engine.n_running)


async def test_what_was_opened_before_the_engine_was_ready_is_read_as_soon_as_it_is():
    engine = Engine([""])
    pipeline = Pipeline(engine=engine)
    pipeline.completer.opened(opened("x = 1\n"))
    await pipeline.completer.warm()
    await until(lambda: engine.prompts)
    assert engine.prompts[0].max_tokens == 0
    await pipeline.completer.retire()


async def test_a_secret_file_is_not_read():
    engine = Engine([""])
    pipeline = Pipeline(engine=engine)
    await pipeline.completer.warm()
    pipeline.completer.opened(opened("TOKEN=1\n", "file:///w/.env"))
    assert pipeline.completer._opened is None
    assert pipeline.completer._read_ahead._task is None


# Where the cursor rests


class Ahead(Engine):
    """Tells what was read only, and what was asked."""

    @property
    def read(self):
        return [(prompt.prefix, prompt.priority) for prompt in self.prompts if not prompt.max_tokens]

    @property
    def asked(self):
        return [prompt.prefix for prompt in self.prompts if prompt.max_tokens]


def resting(*answers, read=True, **settings):
    return Pipeline(engine=Ahead(answers), lookAhead={"mode": "off", "read": read}, **settings)


@on_virtual_time
async def test_where_something_remembered_is_shown_the_place_is_read_for_what_may_be_asked_next():
    pipeline = resting("foo(a)", "")
    await pipeline("x = ‸\n")
    await asyncio.sleep(1)
    (shown,) = await pipeline("x = fo‸\n")
    assert shown.text == "o(a)"
    await asyncio.sleep(1)
    assert pipeline.engine.read[-1] == ("x = fo", Priority.WARM_UP)
    assert pipeline.engine.asked == ["x = "]


@on_virtual_time
async def test_where_nothing_may_be_asked_the_place_is_read_as_soon_as_the_cursor_rests_there():
    pipeline = resting("1")
    await pipeline.completer.warm()
    assert await pipeline("fo‸o = 1\n") == []
    await asyncio.sleep(REST_S - 0.01)
    assert pipeline.engine.read == []
    await asyncio.sleep(0.02)
    assert pipeline.engine.read == [("fo", Priority.WARM_UP)]


@on_virtual_time
async def test_a_cursor_that_travels_has_only_its_last_place_read():
    pipeline = resting("1")
    await pipeline.completer.warm()
    for marked in ("f‸oo = 1\n", "fo‸o = 1\n", "foo = 1\nb‸ar\n"):
        await pipeline(marked)
        await asyncio.sleep(REST_S / 2)
    await asyncio.sleep(1)
    assert [prefix for prefix, _ in pipeline.engine.read] == ["foo = 1\nb"]


@pytest.mark.parametrize("read_for_s", [REST_S / 2, REST_S * 2], ids=["before it begins", "while it reads"])
@on_virtual_time
async def test_the_next_ask_stops_it(read_for_s):
    pipeline = resting(Answer(first_delay_ms=60_000), "1")
    await pipeline.completer.warm()
    await pipeline("fo‸o = 1\n")
    await asyncio.sleep(read_for_s)
    assert pipeline.engine.n_running == (read_for_s > REST_S)
    asked = asyncio.create_task(pipeline("foo = ‸\n"))
    await asyncio.sleep(0.01)
    assert pipeline.engine.n_closed_early == (read_for_s > REST_S)
    await asyncio.sleep(REST_S - 0.02)
    assert [prefix for prefix, _ in pipeline.engine.read] == (["fo"] if read_for_s > REST_S else [])
    await pipeline.completer.retire()
    await asked


@on_virtual_time
async def test_a_document_that_is_read_goes_on_being_read_while_something_is_asked():
    pipeline = resting(Answer(first_delay_ms=500), Answer(chunks=("1",), first_delay_ms=300))
    await pipeline.completer.warm()
    pipeline.completer.opened(opened("x = 1\n"))
    await asyncio.sleep(REST_S + 0.1)
    asked = asyncio.create_task(pipeline("y = ‸\n", uri="file:///w/other.py"))
    await asyncio.sleep(0.1)
    assert (pipeline.engine.n_running, pipeline.engine.n_closed_early) == (2, 0)
    await asked
    await pipeline.completer.retire()


@on_virtual_time
async def test_the_setting_switches_it_off():
    pipeline = resting("foo(a)", read=False)
    await pipeline.completer.warm()
    pipeline.completer.opened(opened("x = 1\n"))
    await asyncio.sleep(1)
    await pipeline("fo‸o = 1\n")
    await asyncio.sleep(1)
    for marked in ("x = ‸\n", "x = fo‸\n"):
        await pipeline(marked)
        await asyncio.sleep(1)
    assert pipeline.engine.read == []


@on_virtual_time
async def test_a_closed_document_is_not_read_where_the_cursor_was():
    pipeline = resting("1")
    await pipeline.completer.warm()
    await pipeline("fo‸o = 1\n")
    pipeline.completer.closed("file:///w/app.py")
    await asyncio.sleep(1)
    assert pipeline.engine.read == []
