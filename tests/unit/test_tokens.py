"""What text costs: estimates, rates that follow what prompts really took, and counts of the engine's own tokenizer."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.context import line_counts, tokens
from monkeycode_lsp.context.calibration import Calibration
from monkeycode_lsp.context.line_counts import LineCounts
from monkeycode_lsp.context.tokens import Rates
from monkeycode_lsp.domain import Control, Plain, Prompt, Usage
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.engines.counting import Counting, TokenCounts

CODE = "    def area(self, width: int) -> float:\n        return self.height * width\n" * 20
CJK = "# 这个函数返回列表中所有偶数的总和\n" * 20
MODEL = Model("m", None, "m1")


@pytest.mark.parametrize(
    ("text", "n_tokens"),  # by the default model's tokenizer
    [
        ("def total(values: list[int]) -> int:\n", 11),
        ("        return sum(value for value in values)\n", 9),
        ("HTTP_TIMEOUT_MS = 15000\n", 10),
    ],
)
def test_an_estimate_is_near_the_truth(text, n_tokens):
    assert tokens.estimate(text, tokens.rates("python")) == pytest.approx(n_tokens, abs=2.5)


@given(st.text(max_size=60), st.text(max_size=60))
def test_more_text_costs_more(one, other):
    assert 0 <= tokens.estimate(one) <= tokens.estimate(one + "\n" + other + "\n") + 1e-6


def test_a_long_text_costs_about_what_its_parts_do():
    assert tokens.estimate(CODE * 50) == pytest.approx(50 * 40 * tokens.estimate(CODE) / 40, rel=0.1)
    assert tokens.estimate(CJK * 50) == pytest.approx(50 * tokens.estimate(CJK), rel=0.1)


def test_half_a_character_costs_something_and_fails_nowhere():
    assert tokens.estimate("\ud800\0") > 0


def test_an_unknown_language_has_rates():
    assert tokens.rates("klingon") == Rates()
    assert tokens.rates("typescriptreact") == tokens.rates("typescript") != Rates()


def asked(calibration, text, per_estimate, *, language="python", model="m", times=1):
    start = tokens.rates(language)
    n_tokens = round(sum(tokens.estimate(line, start) for line in text.splitlines(keepends=True)) * per_estimate)
    for _ in range(times):
        calibration.learn(model, language, text, n_tokens)
    return calibration.rates(model, language)


def test_rates_follow_what_prompts_took_by_model_and_language():
    calibration = Calibration()
    start = tokens.rates("python")
    assert asked(calibration, CODE, 1.5, times=30).piece == pytest.approx(1.5 * start.piece, rel=0.1)
    assert calibration.rates("m", "python").other == start.other
    assert calibration.rates("other", "python") == start
    assert calibration.rates("m", "go") == tokens.rates("go")


def test_a_text_of_another_script_corrects_the_rate_of_that_script():
    calibration = Calibration()
    rates = asked(calibration, CJK, 0.65, times=30)
    assert rates.piece == tokens.rates("python").piece
    assert rates.other == pytest.approx(0.65 * tokens.rates("python").other, rel=0.1)


def test_what_is_a_little_wrong_moves_nothing():
    calibration = Calibration()
    for n in range(100):
        assert asked(calibration, CODE, 1.07 if n % 2 else 0.95) == tokens.rates("python")


def test_rates_change_seldom_while_prompts_differ():
    calibration = Calibration()
    seen = {asked(calibration, CODE, 1.3 + 0.1 * (n % 3)).piece for n in range(200)}
    assert len(seen) <= 4


@pytest.mark.parametrize("per_estimate", [0.1, 6.0])
def test_what_cannot_be_the_whole_prompt_is_not_believed(per_estimate):
    assert asked(Calibration(), CODE, per_estimate, times=10) == tokens.rates("python")


def test_a_short_prompt_tells_nothing():
    calibration = Calibration()
    calibration.learn("m", "python", "x = 1\n", 40)
    assert calibration.rates("m", "python") == tokens.rates("python")


def test_a_line_is_estimated_until_it_is_counted():
    counts = LineCounts()
    counter = counts.at(Rates(piece=1.0))
    assert counter.line("x = 1\n") == tokens.estimate("x = 1\n", Rates(piece=1.0))
    assert counter.line("x = 1\n") != 40
    assert counts.take_waiting(10) == ["x = 1\n"]
    counts.learn(["x = 1\n"], [40])
    assert counter.line("x = 1\n") == 40
    assert counter.part("x = 1\n") != 40
    assert not counts.waits


def test_endless_lines_do_not_wait_and_what_waits_is_bounded():
    counts = LineCounts(most_known=10)
    counts.known("x" * (line_counts.LONGEST + 1))
    assert not counts.waits
    for n in range(5_000):
        counts.known(f"{n}\n")
    lines = counts.take_waiting(100_000)
    assert len(lines) == line_counts._MOST_WAITING
    counts.learn(lines, range(len(lines)))
    assert [counts.known(line) for line in (lines[0], lines[-1])] == [None, len(lines) - 1]


class Engine:
    """One that counts letters, when it is told to."""

    def __init__(self):
        self.may = asyncio.Event()
        self.asked = []
        self.can = True

    async def count(self, texts):
        self.asked.append(list(texts))
        await self.may.wait()
        return [100 * len(text) for text in texts] if self.can else None


class Dumb:
    pass


async def test_no_window_waits_for_a_count_and_the_next_one_has_it():
    engine = Engine()
    counts = TokenCounts(engine)
    assert counts.at(MODEL, "python").line("x = 1\n") < 10
    counts.count_soon()
    assert counts.at(MODEL, "python").line("x = 1\n") < 10
    engine.may.set()
    await counts._task
    assert counts.at(MODEL, "python").line("x = 1\n") == 600
    counts.at(MODEL, "python").line("y = 1\n")
    counts.count_soon()
    await counts._task
    assert engine.asked == [["x = 1\n"], ["y = 1\n"]]


async def test_another_model_counts_anew():
    engine = Engine()
    engine.may.set()
    counts = TokenCounts(engine)
    counts.at(MODEL, "python").line("x\n")
    counts.count_soon()
    await counts._task
    assert counts.at(Model("n", None, "m2"), "python").line("x\n") < 10
    assert counts.at(None, "python").line("x\n") < 10


async def test_an_engine_that_cannot_count_now_is_asked_again_with_the_next_window():
    engine = Engine()
    engine.may.set()
    engine.can = False
    counts = TokenCounts(engine)
    for _ in range(2):
        assert counts.at(MODEL, "python").line("x\n") < 10
        counts.count_soon()
        await counts._task
    assert engine.asked == [["x\n"], ["x\n"]]


async def test_an_engine_without_a_tokenizer_is_never_asked():
    counts = TokenCounts(Dumb())
    assert not isinstance(Dumb(), Counting)
    counts.at(MODEL, "python").line("x\n")
    counts.count_soon()
    await counts.aclose()
    assert counts._task is None


async def test_closing_ends_a_count():
    counts = TokenCounts(Engine())
    counts.at(MODEL, "python").line("x\n")
    counts.count_soon()
    await asyncio.sleep(0)
    await counts.aclose()
    assert counts._task.cancelled()


@pytest.mark.parametrize("usage", [Usage(), Usage(read=900), Usage(reused=900)])
def test_half_a_usage_says_nothing(usage):
    counts = TokenCounts(Dumb())
    counts.learn("python", Prompt((Plain(CODE),), CODE, "", model="m1"), usage)
    assert counts.at(MODEL, "python").part("word") == tokens.estimate("word", tokens.rates("python"))


@pytest.mark.parametrize("usage", [lambda n: Usage(reused=n - 100, read=100), lambda n: Usage(read=n, whole=n)])
def test_usage_corrects_the_estimate_of_its_model(usage):
    counts = TokenCounts(Dumb())
    before = counts.at(MODEL, "python").part("word word")
    n_tokens = round(2 * tokens.estimate(CODE, tokens.rates("python")))
    prompt = Prompt((Control("<pre>"), Plain(CODE)), CODE, "", model="m1")
    for _ in range(20):
        counts.learn("python", prompt, usage(n_tokens))
    assert counts.at(MODEL, "python").part("word word") == pytest.approx(2 * before, rel=0.12)


async def test_lines_are_counted_by_whoever_answers():
    class Pair:
        def __init__(self):
            self.engines = {"m1": Engine(), "m2": Dumb()}

        def answering(self, model):
            return self.engines[model]

    pair = Pair()
    pair.engines["m1"].may.set()
    counts = TokenCounts(pair)
    for _ in range(2):
        counts.at(Model("n", None, "m2"), "python").line("x\n")
        counts.count_soon()
        assert counts._task is None or counts._task.done()
        counts.at(MODEL, "python").line("x\n")
        counts.count_soon()
        await counts._task
        assert counts.at(MODEL, "python").line("x\n") == 200


def test_the_first_prompt_says_more_than_a_later_one():
    start = tokens.rates("python").piece
    assert asked(Calibration(), CODE, 1.5).piece == pytest.approx(1.3 * start, rel=0.03)
    known = Calibration()
    asked(known, CODE, 1.5, times=30)
    assert asked(known, CODE, 1.0).piece > 1.35 * start
