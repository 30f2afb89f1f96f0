"""The next suggestion, worked out before anybody asks for it: whether it may be, and what comes of it."""

from __future__ import annotations

import asyncio
import threading

import msgspec
import pytest

from monkeycode_lsp import config
from monkeycode_lsp.domain import Origin, Priority
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.engines.scripted import Answer, ScriptedEngine
from monkeycode_lsp.look_ahead import LookAhead
from tests.unit.test_completer import Pipeline, until
from tests.unit.virtual import on_virtual_time

LOCAL = Model("local", None, "local", takes_background=True)
ENDPOINT = msgspec.structs.replace(LOCAL, takes_background=False)


def allowance(mode="auto", share=0.3, on_battery=lambda: False):
    return LookAhead(config.LookAhead(mode=mode, share=share), on_battery)


@pytest.mark.parametrize(
    ("mode", "share", "model", "allowed"),
    [
        ("auto", 0.3, LOCAL, True),
        ("auto", 0.3, ENDPOINT, False),
        ("on", 0.3, ENDPOINT, True),
        ("on", 0.3, LOCAL, True),
        ("off", 0.3, LOCAL, False),
        ("on", 0.0, LOCAL, False),
    ],
)
@on_virtual_time
async def test_the_setting_and_the_engine_say_whether_it_may_be(mode, share, model, allowed):
    ahead = allowance(mode, share)
    assert ahead.allows(model) is allowed
    ahead.aclose()


@on_virtual_time
async def test_it_takes_its_share_of_the_time_and_no_more():
    ahead = allowance("on", 0.3)
    assert ahead.allows(LOCAL)
    ahead.spent(4.0)  # 1.5 s were there to begin with; 0.5 s are needed to begin
    assert not ahead.allows(LOCAL)
    await asyncio.sleep(9.9)
    assert not ahead.allows(LOCAL)
    await asyncio.sleep(0.2)
    assert ahead.allows(LOCAL)


@on_virtual_time
async def test_of_the_time_that_was_not_used_only_some_is_saved():
    ahead = allowance("on", 0.5)
    assert ahead.allows(LOCAL)
    await asyncio.sleep(3600)
    ahead.spent(4.4)
    assert ahead.allows(LOCAL)
    ahead.spent(0.2)
    assert not ahead.allows(LOCAL)


async def test_on_battery_it_is_left_and_plugged_in_again_it_is_not():
    looked, unplugged = threading.Event(), True

    def on_battery():
        looked.set()
        return unplugged

    ahead = allowance(on_battery=on_battery)
    ahead.allows(LOCAL)  # looks, which may take a while: nobody waits for it
    await until(lambda: not ahead.allows(LOCAL))
    assert looked.is_set()
    unplugged = False
    looked.clear()
    assert not ahead.allows(LOCAL)
    await asyncio.sleep(0.02)
    assert not looked.is_set()  # not looked at again so soon
    ahead._looked_at -= 61
    await until(lambda: ahead.allows(LOCAL))
    assert looked.is_set()
    ahead.aclose()


async def test_where_it_is_wanted_whatever_it_costs_the_battery_is_not_looked_at():
    looked = threading.Event()
    ahead = allowance("on", on_battery=looked.set)
    assert ahead.allows(LOCAL)
    await asyncio.sleep(0.02)
    assert not looked.is_set()


async def test_a_battery_that_does_not_answer_costs_one_thread_and_is_looked_at_when_it_does():
    go, n_looks = threading.Event(), 0

    def on_battery():
        nonlocal n_looks
        n_looks += 1
        assert go.wait(60)
        return True

    for _ in range(5):  # as after a change of settings
        ahead = allowance(on_battery=on_battery)
        assert ahead.allows(LOCAL)
        await until(lambda: n_looks)
        await asyncio.sleep(0.01)  # it would be looked at again now
        ahead.aclose()
    assert n_looks == 1
    ahead = allowance(on_battery=on_battery)
    assert ahead.allows(LOCAL)
    go.set()
    await until(lambda: not ahead.allows(LOCAL))
    ahead.aclose()


# In the pipeline


class Local(ScriptedEngine):
    """As the local engine: it works in the background too."""

    takes_background = True

    async def ready(self):
        return msgspec.structs.replace(await super().ready(), takes_background=self.takes_background)

    @property
    def asked(self):
        """What it was asked with which priority; places that were only read left out."""
        return [(asked.prefix, asked.priority) for asked in self.prompts if asked.max_tokens]

    @property
    def n_interactive(self):
        return sum(priority is Priority.INTERACTIVE for _, priority in self.asked)


class Slow(Local):
    """Takes its time for what nobody waits for."""

    def __init__(self, answer, ahead, *, delay_s=5.0):
        super().__init__([answer, Answer(chunks=(ahead,), first_delay_ms=delay_s * 1e3), "elsewhere()"])


def pipeline(*answers, engine=None, read=False, mode="auto", **settings):
    return Pipeline(engine=engine or Local(answers), lookAhead={"mode": mode, "read": read}, **settings)


HERE = "def f(a, b):\n    ‸\n"
NEXT = "def f(a, b):\n    c = a + b‸\n"


@on_virtual_time
async def test_the_next_suggestion_is_generated_as_if_the_shown_one_had_been_taken():
    running = pipeline("c = a + b", "\n    return c")
    assert await running.text(HERE) == "c = a + b"
    await asyncio.sleep(0.1)
    assert running.engine.asked == [
        ("def f(a, b):\n    ", Priority.INTERACTIVE),
        ("def f(a, b):\n    c = a + b", Priority.LOOK_AHEAD),
    ]
    (shown,) = await running(NEXT)
    assert (shown.text, shown.origin) == ("\n    return c", Origin.MEMORY)
    assert running.engine.n_interactive == 1


@on_virtual_time
async def test_taking_one_after_the_other_never_waits():
    running = pipeline("x = 1", "\ny = 2", "\nz = 3", "\nw = 4", "\nv = 5")
    document, origins = "import a\n", []
    for _ in range(5):
        (shown,) = await running(f"{document}‸\n")
        origins.append(shown.origin)
        document += shown.text
        await asyncio.sleep(0.1)
    assert document == "import a\nx = 1\ny = 2\nz = 3\nw = 4\nv = 5"
    assert origins == [Origin.ENGINE, *[Origin.MEMORY] * 4]
    assert running.engine.n_interactive == 1


@on_virtual_time
async def test_typing_along_does_not_begin_it_again():
    running = pipeline(engine=Slow("c = a + b", "\n    return c"))
    await running(HERE)
    for typed in ("c", "c ", "c =", "c = ", "c = a"):
        await asyncio.sleep(0.1)
        (shown,) = await running(HERE.replace("‸", f"{typed}‸"))
        assert (typed + shown.text, shown.origin) == ("c = a + b", Origin.TYPED_THROUGH)
    assert len(running.engine.asked) == 2
    assert running.engine.n_running == 1
    await running.completer.retire()


@pytest.mark.parametrize("elsewhere", ["def f(a, b):\n    x‸\n", "def f(a, b):\n    c = b‸\n"])
@on_virtual_time
async def test_typing_something_else_stops_it(elsewhere):
    running = pipeline(engine=Slow("c = a + b", "\n    return c"))
    await running(HERE)
    await asyncio.sleep(0.1)
    await running(elsewhere)
    assert running.engine.n_closed_early == 1


@on_virtual_time
async def test_whoever_needs_the_engine_in_another_document_stops_it():
    running = pipeline(engine=Slow("c = a + b", "\n    return c"))
    await running(HERE)
    await asyncio.sleep(0.1)
    assert running.engine.n_running == 1
    assert await running.text("y = ‸\n", uri="file:///w/other.py") == "elsewhere()"
    assert running.engine.n_closed_early == 1
    assert running.engine.asked[-1][1] is Priority.LOOK_AHEAD  # and now it is that document's turn
    await running.completer.retire()


@on_virtual_time
async def test_one_in_flight_is_adopted_and_makes_way_no_more():
    running = pipeline(engine=Slow("c = a + b", "\n    return c", delay_s=1.0))
    await running(HERE)
    await asyncio.sleep(0.1)
    taken = asyncio.create_task(running(NEXT))
    await asyncio.sleep(0.1)
    assert await running.text("y = ‸\n", uri="file:///w/other.py") == "elsewhere()"
    (shown,) = await taken
    assert (shown.text, shown.origin) == ("\n    return c", Origin.ADOPTED)
    assert running.engine.n_interactive == 2  # the first one and the other document's
    await running.completer.retire()


@on_virtual_time
async def test_what_the_next_place_brings_is_remembered_so_it_is_not_generated_twice():
    running = pipeline("c = a + b", "\n    return c", "d", "e")
    for _ in range(3):
        assert await running.text(HERE) == "c = a + b"
        await asyncio.sleep(0.1)
    assert len(running.engine.asked) == 2


@pytest.mark.parametrize(
    ("said", "settings"),
    [
        ("c = a + b", {"cache": {"enabled": False}}),
        ("c = a + b", {"mode": "off"}),
        ("c = a + b  # the sum", {"completion": {"inComments": False}}),
    ],
    ids=["no cache to keep it in", "off", "a place where nothing is shown"],
)
@on_virtual_time
async def test_where_it_would_be_of_no_use_nothing_is_looked_ahead(said, settings):
    running = pipeline(said, **settings)
    assert await running.text(HERE) == said
    await asyncio.sleep(1)
    assert len(running.engine.asked) == 1


@on_virtual_time
async def test_an_endpoint_is_not_asked_ahead_unless_the_user_wants_it():
    for mode, n_asked in (("auto", 1), ("on", 2)):
        engine = Local(["c = a + b", "\n    return c"])
        engine.takes_background = False
        await pipeline(engine=engine, mode=mode).text(HERE)
        await asyncio.sleep(1)
        assert len(engine.asked) == n_asked


@on_virtual_time
async def test_nothing_is_looked_ahead_while_the_answer_goes_on():
    running = pipeline(Answer(chunks=("c = a\n", "    d = b\n", "    return c"), delay_ms=500))
    assert await running.text(HERE) == "c = a\n    d = b"
    await asyncio.sleep(0.1)
    assert len(running.engine.asked) == 1
    await running.completer.retire()


@on_virtual_time
async def test_what_fails_ahead_of_time_bothers_nobody():
    running = pipeline("c = a + b", Answer(fault="unavailable"), "\n    return c")
    await running(HERE)
    await asyncio.sleep(0.1)
    assert running.reports == []
    assert await running.text(NEXT) == "\n    return c"


@on_virtual_time
async def test_the_time_it_takes_is_reckoned_whether_it_ends_or_is_stopped():
    running = pipeline(engine=Slow("c = a + b", "\n    return c", delay_s=60.0))
    await running(HERE)
    await asyncio.sleep(1.4)
    assert running.running, "what was saved up lasts for 1.5 s"
    await asyncio.sleep(0.2)
    assert not running.running, "it is stopped when the allowance is used up"
    await running("y = ‸\n", uri="file:///w/other.py")  # has nothing left for its own
    await asyncio.sleep(0.1)
    assert [priority for _, priority in running.engine.asked] == [Priority.INTERACTIVE, Priority.LOOK_AHEAD, Priority.INTERACTIVE]
    await asyncio.sleep(30)
    await running("z = ‸\n", uri="file:///w/other.py")
    await asyncio.sleep(0.1)
    assert running.engine.asked[-1][1] is Priority.LOOK_AHEAD
