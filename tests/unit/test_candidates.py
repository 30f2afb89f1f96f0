"""Different suggestions to choose from, when the user asks by key."""

import asyncio

import msgspec
import pytest

from monkeycode_lsp import candidates
from monkeycode_lsp.context.surroundings import Surroundings
from monkeycode_lsp.domain import OutcomeKind, Suggestion
from monkeycode_lsp.engines.scripted import Answer, ScriptedEngine
from monkeycode_lsp.generation import Request
from monkeycode_lsp.stops import plan
from tests.unit.places import at
from tests.unit.test_completer import Pipeline, until
from tests.unit.virtual import now, on_virtual_time


def choosing(*answers, n=3, **settings):
    return Pipeline([Answer(chunks=(text,), logprob=logprob) for text, logprob in answers], completion={"candidates": n}, **settings)


FOUR = (("a + b", -0.1), ("b + a", -0.3), ("a - b", -0.2), ("a + b", -0.1))


async def test_asked_by_key_there_are_several_that_differ_the_surest_first():
    pipeline = choosing(*FOUR)
    shown = await pipeline("c = ‸\n", invoked=True)
    assert [suggestion.text for suggestion in shown] == ["a + b", "a - b", "b + a"]
    assert {suggestion.id for suggestion in shown} == {pipeline.last.id}
    assert pipeline.last.kind is OutcomeKind.SHOWN


async def test_the_likeliest_is_asked_for_as_always_and_the_others_are_drawn_differently():
    pipeline = choosing(*FOUR)
    await pipeline("c = ‸\n", invoked=True)
    samplings = [prompt.sampling for prompt in pipeline.engine.prompts]
    assert [sampling.temperature for sampling in samplings].count(0.0) == 1
    drawn = [sampling for sampling in samplings if sampling.temperature]
    assert len({sampling.seed for sampling in drawn}) == len(drawn) == 3
    assert len({prompt.segments for prompt in pipeline.engine.prompts}) == 1


async def test_while_typing_there_is_one():
    pipeline = choosing(*FOUR)
    assert len(await pipeline("c = ‸\n")) == 1
    assert len(pipeline.engine.prompts) == 1


async def test_what_is_known_already_is_among_them():
    pipeline = choosing(("a + b", -0.1), ("b + a", -0.3))
    await pipeline("c = ‸\n")
    shown = await pipeline("c = ‸\n", invoked=True)
    assert {"a + b", "b + a"} == {suggestion.text for suggestion in shown}


async def test_the_others_are_not_remembered():
    pipeline = choosing(*FOUR)
    await pipeline("c = ‸\n", invoked=True)
    assert [suggestion.text for suggestion in await pipeline("c = ‸\n")] == ["a + b"]


async def test_where_the_engine_has_nothing_to_say_there_is_nothing():
    pipeline = choosing(("", None))
    assert await pipeline("c = ‸\n", invoked=True) == []
    assert pipeline.last.kind is OutcomeKind.EMPTY


async def test_who_asks_anew_stops_all_of_them():
    pipeline = Pipeline([Answer(chunks=("never",), first_delay_ms=60_000)], completion={"candidates": 3})
    asking = asyncio.create_task(pipeline("c = ‸\n", invoked=True))
    await until(lambda: pipeline.engine.n_running == 4)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await pipeline.completer.retire()
    assert pipeline.engine.n_running == 0


async def test_one_that_fails_does_not_take_the_others_along():
    answers = [Answer(chunks=("a + b",)), Answer(chunks=("b",), fault="break"), Answer(chunks=("a - b",))]
    pipeline = Pipeline(answers, completion={"candidates": 3})
    assert {suggestion.text for suggestion in await pipeline("c = ‸\n", invoked=True)} >= {"a - b"}


def test_parse_errors_count_before_confidence():
    window = at("c = ‸\n")
    request = Request(None, window, plan(window, "auto"))
    broken, sound = Suggestion("f(", confidence=-0.1), Suggestion("f()", confidence=-2.0)
    unknown, surer = Suggestion("g()"), Suggestion("h()", confidence=-0.5)
    assert candidates.ranked([broken], [sound, unknown, surer], request, 4) == [surer, unknown, sound, broken]


async def test_when_the_others_fail_the_likeliest_is_shown_all_the_same():
    answers = [Answer(chunks=("a + b",)), *[Answer(fault="unavailable")] * 5]
    pipeline = Pipeline(answers, completion={"candidates": 5})
    assert [suggestion.text for suggestion in await pipeline("c = ‸\n", invoked=True)] == ["a + b"]


@on_virtual_time
async def test_others_that_take_much_longer_are_not_waited_for():
    answers = [Answer(chunks=("a + b",), first_delay_ms=100), *[Answer(chunks=("x",), first_delay_ms=60_000)] * 5]
    pipeline = Pipeline(answers, completion={"candidates": 5, "deadlineMs": 10_000})
    began = now()
    assert [suggestion.text for suggestion in await pipeline("c = ‸\n", invoked=True)] == ["a + b"]
    assert now() - began < 2


async def test_when_the_likeliest_fails_the_failure_is_told():
    pipeline = Pipeline([Answer(fault="unavailable")], completion={"candidates": 3})
    assert await pipeline("c = ‸\n", invoked=True) == []
    assert pipeline.last.kind is OutcomeKind.FAILED
    assert len(pipeline.reports) == 1


async def test_what_broke_off_is_not_offered():
    answers = [Answer(chunks=("a + b",)), *[Answer(chunks=("a - ",), fault="break")] * 5]
    pipeline = Pipeline(answers, completion={"candidates": 3})
    assert [suggestion.text for suggestion in await pipeline("c = ‸\n", invoked=True)] == ["a + b"]


@pytest.mark.parametrize(("temperature", "drawn_at"), [(0.2, candidates.LEAST_TEMPERATURE), (1.3, 1.3)])
async def test_the_users_own_temperature_counts_where_it_is_higher(temperature, drawn_at):
    pipeline = Pipeline([Answer(chunks=("a + b",))], completion={"candidates": 3, "temperature": temperature})
    await pipeline("c = ‸\n", invoked=True)
    first, *others = (prompt.sampling.temperature for prompt in pipeline.engine.prompts)
    assert first == temperature
    assert set(others) == {drawn_at}


async def test_what_differs_in_white_space_only_is_no_choice():
    pipeline = choosing(("a + b", -0.1), ("a+b", -0.3), ("a  +  b", -0.2), ("a+ b", -0.1))
    assert [suggestion.text for suggestion in await pipeline("c = ‸\n", invoked=True)] == ["a + b"]


def test_parse_errors_are_those_of_the_whole_document():
    window = at("‸\n")
    around = Surroundings(before='x = """\n', after='"""\n')
    text, other = Suggestion("f(a", confidence=-0.1), Suggestion("f(a)", confidence=-2.0)
    for known, first in ((around, text), (Surroundings(), other)):
        request = Request(None, window, plan(window, "auto"), known)
        assert candidates.ranked([text], [other], request, 1) == [first]


class Native(ScriptedEngine):
    """An engine of this machine, which does work that nobody pays for."""

    async def ready(self):
        return msgspec.structs.replace(await super().ready(), takes_background=True)


async def test_where_the_likeliest_does_not_fit_another_one_is_tried_by_key_on_this_machine():
    answers = ["return total", "1 + total", "1 + total"]
    document = "x = ‸return total\n"
    pipeline = Pipeline(engine=Native(answers))
    assert [suggestion.text for suggestion in await pipeline(document, invoked=True)] == ["1 + total"]
    assert len(pipeline.engine.prompts) > 1
    for engine, invoked in ((Native(answers), False), (ScriptedEngine(answers), True)):
        pipeline = Pipeline(engine=engine)
        assert await pipeline(document, invoked=invoked) == []
        assert len(pipeline.engine.prompts) == 1


async def test_where_the_model_says_nothing_nothing_else_is_tried():
    pipeline = Pipeline(engine=Native(["", "1"]))
    assert await pipeline("x = ‸\n", invoked=True) == []
    assert len(pipeline.engine.prompts) == 1
