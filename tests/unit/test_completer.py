"""The pipeline, with the engine that says what it is told."""

import asyncio

import pytest

from monkeycode_lsp import account, config
from monkeycode_lsp.bench.replay.virtual import VirtualLoop
from monkeycode_lsp.completer import Completer
from monkeycode_lsp.context import tokens
from monkeycode_lsp.domain import Chunk, Finish, Origin, OutcomeKind, Usage
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.engines.scripted import Answer, ScriptedEngine
from monkeycode_lsp.errors import ContextOverflowError, SupersededError
from monkeycode_lsp.observe.outcomes import Outcomes
from monkeycode_lsp.recall.lookup import Recall
from monkeycode_lsp.recall.memory import Memory
from monkeycode_lsp.turn import Turn
from tests.unit.places import ask
from tests.unit.virtual import on_virtual_time


async def until(condition):
    """Give way until `condition` holds."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - what is waited for is another task's next step
            await asyncio.sleep(0)


class Pipeline:
    def __init__(
        self,
        answers=("return a + b",),
        engine=None,
        *,
        read_s=2.0,
        on_battery=lambda: False,
        rules=None,
        gathering=None,
        tiers=(),
        **settings,
    ):
        tree = {"debounce": {"mode": "off"}} | settings
        self.engine = engine or ScriptedEngine(list(answers))
        self.outcomes = Outcomes()
        self.reports = []
        decoded, problems = config.decode(tree)
        assert not problems
        self.completer = Completer(
            settings=decoded,
            engine=self.engine,
            recall=Recall(Memory(most_bytes=1 << 20, ttl_s=300), tiers=tiers, showings=decoded.cache.showings, identify="team/{}".format),
            turn=Turn(),
            outcomes=self.outcomes,
            report=self.reports.append,
            gathering=gathering,
            rules=rules,
            read_s=read_s,
            on_battery=on_battery,
        )

    async def __call__(self, marked, **how):
        return await self.completer.complete(ask(marked, **how))

    async def text(self, marked, **how):
        shown = await self(marked, **how)
        return shown[0].text if shown else None

    @property
    def last(self):
        return self.outcomes.last()[-1]

    @property
    def running(self):
        return self.completer.recall.table.all_running()


DEF = "def f(a, b):\n    ‸\n"


async def test_an_answer_is_shown_and_its_outcome_says_so():
    pipeline = Pipeline()
    (shown,) = await pipeline(DEF)
    assert (shown.text, shown.origin) == ("return a + b", Origin.ENGINE)
    outcome = pipeline.last
    assert (outcome.kind, outcome.id, outcome.place) == (OutcomeKind.SHOWN, shown.id, "app.py:2:5")
    assert {"gate", "debounce", "ready", "prompt", "engine", "clean"} <= set(outcome.stages_ms)


async def test_typing_through_a_completion_does_not_ask_again():
    pipeline = Pipeline()
    await pipeline(DEF)
    (second,) = await pipeline("def f(a, b):\n    return a‸\n")
    assert (second.text, second.origin) == (" + b", Origin.TYPED_THROUGH)
    assert len(pipeline.engine.prompts) == 1


async def test_leaving_a_completion_asks_again():
    pipeline = Pipeline(["llo()", "x()"])
    assert await pipeline.text("he‸") == "llo()"
    assert await pipeline.text("hex‸") == "x()"


async def test_empty_answers_are_not_remembered():
    pipeline = Pipeline(["", "x"])
    assert await pipeline.text("a = ‸") is None
    assert pipeline.last.kind is OutcomeKind.EMPTY
    assert await pipeline.text("a = ‸") == "x"


async def test_without_the_cache_every_ask_reaches_the_engine():
    pipeline = Pipeline(["1", "2"], cache={"enabled": False})
    assert [await pipeline.text("a = ‸") for _ in range(2)] == ["1", "2"]


async def test_a_newer_ask_supersedes_and_stops_the_engine():
    pipeline = Pipeline([Answer(chunks=("never",), first_delay_ms=60_000), "42"])
    old = asyncio.create_task(pipeline("a = ‸"))
    await until(lambda: pipeline.engine.n_running)
    assert await pipeline.text("a = 1 + ‸") == "42"
    with pytest.raises(SupersededError):
        await old
    assert (pipeline.engine.n_running, pipeline.engine.n_closed_early) == (0, 1)
    assert [outcome.kind for outcome in pipeline.outcomes.last()] == [OutcomeKind.SUPERSEDED, OutcomeKind.SHOWN]


async def test_a_cancelled_ask_stops_the_engine_after_a_moment():
    pipeline = Pipeline([Answer(chunks=("never",), first_delay_ms=60_000)])
    old = asyncio.create_task(pipeline("a = ‸"))
    await until(lambda: pipeline.engine.n_running)
    old.cancel()
    with pytest.raises(asyncio.CancelledError):
        await old
    await until(lambda: not pipeline.engine.n_running)
    assert pipeline.last.kind is OutcomeKind.CANCELLED


async def test_asking_again_for_the_same_place_adopts_the_running_generation():
    pipeline = Pipeline([Answer(chunks=("", "return a"), delay_ms=80)])
    old = asyncio.create_task(pipeline(DEF))
    await until(lambda: pipeline.engine.n_running)
    old.cancel()
    (shown,) = await pipeline(DEF)
    assert (shown.text, shown.origin) == ("return a", Origin.ADOPTED)
    assert len(pipeline.engine.prompts) == 1


async def test_typing_what_the_model_is_saying_adopts_its_generation():
    pipeline = Pipeline([Answer(chunks=("return", " a + b"), delay_ms=150)])
    old = asyncio.create_task(pipeline(DEF))
    await asyncio.sleep(0)
    await until(lambda: any(made.text for made in pipeline.running))
    (shown,) = await pipeline("def f(a, b):\n    ret‸\n")
    assert (shown.text, shown.origin) == ("urn a + b", Origin.ADOPTED)
    with pytest.raises(SupersededError):
        await old
    assert len(pipeline.engine.prompts) == 1


@on_virtual_time
async def test_what_there_is_at_the_deadline_is_shown_and_the_rest_comes_later():
    pipeline = Pipeline([Answer(chunks=("return a", " + b"), delay_ms=300)], completion={"deadlineMs": 150})
    assert await pipeline.text(DEF) == "return a"
    (later,) = await pipeline("def f(a, b):\n    ret‸\n", invoked=True)
    assert later.text.startswith("urn a")
    await asyncio.sleep(1)
    assert await pipeline.text("def f(a, b):\n    retu‸\n") == "rn a + b"
    assert len(pipeline.engine.prompts) == 1


async def test_a_deadline_without_text_is_empty_and_says_so():
    pipeline = Pipeline([Answer(chunks=("x",), first_delay_ms=10_000)], completion={"deadlineMs": 50})
    assert await pipeline("a = ‸") == []
    assert "deadlineMs" in pipeline.last.reason
    await pipeline.completer.retire()


async def test_a_broken_stream_is_empty_unless_asked_by_hand_and_never_remembered():
    pipeline = Pipeline([Answer(chunks=("ret",), fault="break"), Answer(chunks=("ret",), fault="break"), "return 1"])
    assert await pipeline("def f():\n    ‸") == []
    assert await pipeline.text("def f():\n    ‸", invoked=True) == "ret"
    assert await pipeline.text("def f():\n    ‸") == "return 1"
    assert len(pipeline.reports) == 2


async def test_an_engine_that_is_not_there_is_reported():
    pipeline = Pipeline([Answer(fault="unavailable")])
    assert await pipeline("a = ‸") == []
    assert [str(error) for error in pipeline.reports] == ["The scripted engine was told to be unavailable."]
    assert pipeline.last.kind is OutcomeKind.FAILED


async def test_an_error_of_ours_is_logged_and_answered_empty(caplog):
    class Broken(ScriptedEngine):
        def stream(self, prompt):
            raise ZeroDivisionError

    pipeline = Pipeline(engine=Broken(["x"]))
    assert await pipeline("a = ‸") == []
    assert pipeline.last.kind is OutcomeKind.FAILED
    assert "ZeroDivisionError" in caplog.text


async def test_a_gated_place_never_reaches_the_engine():
    pipeline = Pipeline()
    assert await pipeline("a‸", uri="file:///w/.env") == []
    assert pipeline.last.kind is OutcomeKind.GATED
    assert pipeline.engine.prompts == []


async def test_a_prompt_that_is_too_long_is_shortened_once_and_remembered():
    class Small(ScriptedEngine):
        async def stream(self, prompt):
            if len(prompt.prefix) > 1_000:
                self.prompts.append(prompt)
                raise ContextOverflowError("too long", limit_tokens=300)
            async for chunk in super().stream(prompt):
                yield chunk

    pipeline = Pipeline(engine=Small(["1", "1", "2"]))
    long = "x = 1\n" * 400
    assert await pipeline.text(long + "a = ‸") == "1"
    assert await pipeline.text(long + "b = ‸") == "2"
    assert [len(prompt.prefix) > 1_000 for prompt in pipeline.engine.prompts] == [True, False, False]
    assert pipeline.reports == []


async def test_the_last_line_of_an_answer_that_was_cut_by_length_is_left_out():
    pipeline = Pipeline([Answer(chunks=("a = 1\n    b = 2\n    retu",), finish="length")])
    assert await pipeline.text("def f():\n    ‸") == "a = 1\n    b = 2"


async def test_closing_a_document_stops_what_runs_for_it():
    pipeline = Pipeline([Answer(chunks=("x",), first_delay_ms=60_000)])
    old = asyncio.create_task(pipeline("a = ‸"))
    await until(lambda: pipeline.engine.n_running)
    pipeline.completer.closed("file:///w/app.py")
    await pipeline.completer.retire()
    assert pipeline.engine.n_running == 0
    assert await old == []


async def test_the_debounce_waits_for_the_next_key():
    pipeline = Pipeline(["1"], debounce={"mode": "fixed", "maxMs": 50})
    old = asyncio.create_task(pipeline("a =‸", since_edit_ms=0.0))
    await asyncio.sleep(0)
    assert await pipeline.text("a = ‸", since_edit_ms=0.0) == "1"
    with pytest.raises(SupersededError):
        await old
    assert [prompt.prefix for prompt in pipeline.engine.prompts] == ["a = "]


async def test_many_asks_leave_nothing_behind():
    pipeline = Pipeline(["x"])
    for n in range(300):
        task = asyncio.create_task(pipeline(f"a{n} = ‸", uri=f"file:///w/{n % 7}.py"))
        await asyncio.sleep(0)
        if n % 2:
            task.cancel()
        await asyncio.wait({task})
    await pipeline.completer.retire()
    assert pipeline.engine.n_running == 0
    assert not pipeline.running
    assert len(asyncio.all_tasks()) == 1


class Reader(ScriptedEngine):
    speed = 100_000.0

    async def stream(self, prompt):
        self.prompts.append(prompt)
        n = round(tokens.estimate(prompt.prefix + prompt.suffix, tokens.rates("python")))
        await asyncio.sleep(n / self.speed)
        yield Chunk("x", finish=Finish.STOP, usage=Usage(reused=0, read=n, generated=1))

    @property
    def sizes(self):
        return [len(prompt.prefix) for prompt in self.prompts]


async def test_a_slow_reader_gets_a_smaller_window_and_a_fast_one_the_whole():
    pipeline = Pipeline(engine=Reader([]), read_s=0.056)
    long = "x = 1\n" * 1_000
    await pipeline(long + "a = ‸")
    await pipeline(long + "b = ‸")
    pipeline.engine.speed = 10_000.0  # a thousand tokens take a tenth of a second
    await pipeline(long + "c = ‸")
    await pipeline(long + "d = ‸")
    pipeline.engine.speed = 100_000.0
    await pipeline(long + "e = ‸")
    await pipeline(long + "f = ‸")
    await pipeline(long + "g = ‸", uri="file:///w/another.py")
    first, second, third, small, _, same, last = pipeline.engine.sizes
    assert abs(first - second) < 10
    assert abs(first - third) < 10
    assert small < 0.6 * first
    assert abs(same - small) < 10  # in the same document it would be read all anew
    assert last > 0.9 * first


async def test_an_engine_that_goes_on_and_on_is_stopped():
    n_given = 0

    class Endless:
        async def ready(self):
            return Model("endless", None, "endless")

        async def stream(self, prompt):
            nonlocal n_given
            while True:
                n_given += 1
                yield Chunk(f"x{n_given} + ")
                await asyncio.sleep(0)

        async def aclose(self):
            pass

    pipeline = Pipeline(engine=Endless(), completion={"maxTokens": 8, "deadlineMs": 600_000})
    (shown,) = await pipeline("y = ‸\n")
    assert shown.text.startswith("x1 + x2 + ")
    assert n_given < 100


async def test_new_settings_while_the_engine_starts_are_no_cancel_of_the_editors():
    class Starting(ScriptedEngine):
        async def ready(self):
            await asyncio.Event().wait()

    pipeline = Pipeline(engine=Starting(["a"]))
    asked = asyncio.create_task(pipeline(DEF))
    await until(lambda: pipeline.completer._readiness._task)
    await pipeline.completer.retire()
    assert await asked == []
    assert pipeline.last.kind is OutcomeKind.FAILED
    assert "settings changed" in pipeline.last.reason
    assert pipeline.reports == []


@on_virtual_time
async def test_the_engine_gets_ready_while_the_next_key_is_waited_for():
    class Starting(ScriptedEngine):
        asked_at = ()

        async def ready(self):
            self.asked_at = (*self.asked_at, asyncio.get_running_loop().time())
            await asyncio.sleep(0.25)
            return await super().ready()

    pipeline = Pipeline(engine=Starting(["a", "b"]), debounce={"mode": "fixed", "maxMs": 300})
    for marked, shown in (("x = ‸", "a"), ("y = ‸", "b")):
        pipeline.engine.asked_at = ()
        began = asyncio.get_running_loop().time()
        assert await pipeline.text(marked, since_edit_ms=0.0) == shown
        assert pipeline.engine.asked_at == pytest.approx((began,), abs=0.001)
        assert 0.29 < asyncio.get_running_loop().time() - began < 0.4, "not one wait after the other"


async def test_new_settings_in_the_middle_of_an_answer_cut_it_off():
    engine = ScriptedEngine([Answer(("a",), first_delay_ms=60_000)])
    pipeline = Pipeline(engine=engine, completion={"deadlineMs": 60_000})
    asked = asyncio.create_task(pipeline(DEF, invoked=True))
    await until(lambda: pipeline.running)
    await pipeline.completer.retire(Pipeline(engine=engine).completer)
    assert await asked == []
    assert pipeline.last.reason == "The engine's answer was cut off."


def test_every_origin_has_a_sentence_for_the_user():
    assert set(account._SHOWN) == set(Origin)


async def test_a_stream_that_we_cut_still_tells_what_was_read_and_generated():
    class Early(ScriptedEngine):
        async def stream(self, prompt):
            yield Chunk("return", n_tokens=1, usage=Usage(reused=40, read=2))
            yield Chunk(" a\nnext", n_tokens=3)
            yield Chunk(" more", n_tokens=1)

    pipeline = Pipeline(engine=Early([]))
    assert await pipeline.text("def f(a):\n    ret = ‸") == "return a"
    assert (pipeline.last.reused_tokens, pipeline.last.read_tokens, pipeline.last.generated_tokens) == (40, 2, 4)


@pytest.mark.parametrize(("start_s", "shown"), [(9.0, [["x"]]), (14.0, [[]])])
def test_the_first_ask_waits_for_an_engine_that_starts(start_s, shown):
    class Slow(ScriptedEngine):
        async def ready(self):
            await asyncio.sleep(start_s)
            return await super().ready()

    async def session():
        pipeline = Pipeline(engine=Slow([Answer(("x",), first_delay_ms=2_900)]))
        texts = [[suggestion.text for suggestion in await pipeline(DEF)]]
        await pipeline.completer.retire()
        return texts

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(session()) == shown


@pytest.mark.parametrize(("start_s", "reason"), [(0.3, "still starting"), (0.0, "completion.deadlineMs")])
async def test_an_ask_that_the_engine_was_too_late_for_says_what_took_the_time(start_s, reason):
    class Slow(ScriptedEngine):
        async def ready(self):
            await asyncio.sleep(start_s)
            return await super().ready()

    pipeline = Pipeline(engine=Slow([Answer(("x",), first_delay_ms=60_000)]), completion={"deadlineMs": 100})
    assert await pipeline(DEF) == []
    assert reason in pipeline.last.reason
    await pipeline.completer.retire()
