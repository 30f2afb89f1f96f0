"""The pause model: features, survival and what comes with the package."""

from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from monkeycode_lsp.bench import pause_figures
from monkeycode_lsp.bench.replay.load import load
from monkeycode_lsp.config import Debounce
from monkeycode_lsp.domain import Window
from monkeycode_lsp.pause.features import features
from monkeycode_lsp.pause.habit import GROUPS, Habit, Quantiles, kind_of
from monkeycode_lsp.pause.model import Model, shipped

TRACES = Path(__file__).parents[3] / "shared" / "data" / "edit-traces"
MODEL = Model(
    horizons=(-1.0, 0.0, 1.0, 3.0), baseline=(-2.0, 0.0, 1.5, 2.5), weights={"a": 2.0, "b": -1.0}, threshold=0.5, threshold_deleted=0.7
)


def seen(marked, habit=None):
    before, _, after = marked.partition("‸")
    return features(habit or Habit(), Window(before, after, "python", "a.py"))


@pytest.mark.parametrize(
    ("inserted", "kind"),
    [
        ("", "deletion"), ("a", "lower"), ("é", "lower"), ("字", "lower"), ("A", "upper"), ("7", "digit"), (" ", "space"), ("\t", "space"),
        ("\n", "newline"), ("\n    ", "newline"), ("(", "opener"), ("()", "opener"), ("<", "opener"), ("}", "closer"), ('"', "quote"),
        ("''", "quote"), (".", "dot"), (";", "comma"), ("_", "underscore"), ("+", "operator"), ("ab", "text"), (" (", "text"), ("\nx", "text"),
    ],
)  # fmt: skip
def test_a_key_has_a_kind(inserted, kind):
    assert kind_of(inserted) == kind
    assert kind in GROUPS


def test_quantiles_settle_where_their_share_of_the_gaps_is_shorter():
    quantiles = Quantiles()
    seen_p50, seen_p90 = [], []
    for index in range(4_000):
        quantiles = quantiles.learned(100.0 + (index * 37) % 100 * 10)  # evenly from 100 to 1090
        seen_p50.append(quantiles.p50_ms)
        seen_p90.append(quantiles.p90_ms)
    assert sum(seen_p50[1_000:]) / 3_000 == pytest.approx(600, rel=0.1)
    assert sum(seen_p90[1_000:]) / 3_000 == pytest.approx(1_000, rel=0.05)


def test_a_gap_is_learned_for_the_key_before_it():
    habit = Habit().with_key(100, " ").with_key(2_000, "a")
    assert habit.after("space").p50_ms > Quantiles().p50_ms > habit.after("word").p50_ms
    assert habit.gaps_ms == (2_000, 100)
    assert (habit.before, habit.last) == ("space", "lower")


def test_what_a_habit_keeps_is_bounded():
    habit = Habit()
    for _ in range(500):
        habit = habit.with_key(50, "")
    assert len(habit.gaps_ms) == 4
    assert habit.run == habit.deletions == 99
    assert len(habit.quantiles) <= len(set(GROUPS.values()))


def test_a_pause_ends_a_run_and_a_key_ends_deletions():
    habit = Habit().with_key(50, "").with_key(50, "")
    assert (habit.run, habit.deletions) == (2, 2)
    assert habit.with_key(5_000, "").run == 0
    assert habit.with_key(50, "a").deletions == 0


@pytest.mark.parametrize(
    ("marked", "names"),
    [
        ("    ‸", {"blank", "line end"}),
        ("f(a[0‸", {"open", "line end", "word 1"}),
        ("f(a‸)", {"open", "before closers"}),
        ("x)‸ + 1", {"closed"}),
        ("fo‸obar", {"inside word", "word 2"}),
        ("x = ‸", {"space after sign"}),
        ("a ==‸", {"doubled"}),
        ("counter = 1\ncount‸", {"begins a word"}),
        ("counter = 1\ncounter‸", {"known word"}),
    ],
)
def test_the_line_is_seen(marked, names):
    found = seen(marked)
    assert names <= set(found)


def test_a_word_inside_another_is_not_known():
    assert not {"known word", "begins a word"} & set(seen("recount discounts\ncount‸"))


def test_corrections_are_seen():
    assert "deletions 2" in seen("a‸", Habit(deletions=2, last="deletion"))
    assert "corrected" in seen("a‸", Habit(before="deletion"))


def test_an_empty_document_has_features_too():
    assert seen("‸")["blank"] == 1


def test_gaps_are_seen_in_units_of_the_users_own():
    def gap(unit_ms, gap_ms):
        return seen("a‸", Habit(gaps_ms=(gap_ms,), quantiles={"word": Quantiles(p50_ms=unit_ms)}))["gap 1"]

    assert gap(100, 200) == pytest.approx(gap(300, 600))
    assert gap(100, 1e9) == 2.5
    assert gap(100, 0) == -1.5


@pytest.mark.parametrize("model", [MODEL, shipped()], ids=["small", "shipped"])
def test_survival_falls_with_time_and_rises_with_the_score(model):
    times = [1, 20, 60, 100, 170, 300, 700, 3_000, 1e5]
    for score in (-3.0, 0.0, 3.0):
        curve = [model.survival(score, time, 170) for time in times]
        assert all(earlier > later for earlier, later in pairwise(curve))
        assert 0 < curve[-1] < curve[0] < 1
        assert all(model.survival(score + 1, time, 170) > value for time, value in zip(times, curve, strict=True))


def test_survival_is_the_logistic_of_score_less_baseline():
    assert MODEL.survival(0.0, 100, 100) == pytest.approx(0.5)
    assert MODEL.survival(1.5, 271.828, 100) == pytest.approx(0.5, abs=1e-4)
    assert MODEL.score({"a": 1.0, "b": 0.5, "unknown": 9.0}) == 1.5


def test_what_was_waited_is_a_condition():
    for waited in (0.0, 50.0, 200.0):
        chance = MODEL.outlasts(0.3, waited, 250, 170)
        base = MODEL.survival(0.3, waited, 170) if waited else 1.0
        assert chance == pytest.approx(MODEL.survival(0.3, waited + 250, 170) / base)


@pytest.mark.parametrize("waited_ms", [0.0, 35.0, 150.0, 590.0, 800.0])
def test_the_ask_goes_out_at_the_first_moment_that_is_worth_it(waited_ms):
    model = shipped()
    waits = set()
    for score in [-9.0, 9.0, *(step / 20 for step in range(-60, 60))]:
        at_ms = model.wait_ms(score, waited_ms=waited_ms, engine_ms=250, longest_ms=600, unit_ms=170)
        assert waited_ms <= at_ms <= max(600, waited_ms)
        if at_ms < 600:
            assert model.outlasts(score, at_ms, 250, 170) >= model.threshold
        assert all(model.outlasts(score, earlier, 250, 170) < model.threshold for earlier in range(int(waited_ms), int(at_ms) - 20, 5))
        if waited_ms < at_ms < 600:
            assert model.outlasts(score, at_ms - 20, 250, 170) < model.threshold
        waits.add(at_ms)
    assert waited_ms in waits
    assert len(waits) > 5 or waited_ms >= 590


def test_no_ask_waits_beyond_the_longest_wait():
    waits = {shipped().wait_ms(score, waited_ms=0, engine_ms=250, longest_ms=300, unit_ms=170) for score in (-9.0, -2.0, 9.0)}
    assert waits == {0, 300}


def test_every_kind_of_key_has_a_coefficient_and_the_file_is_read_once():
    model = shipped()
    assert model is shipped()
    assert {f"last {kind}" for kind in GROUPS} <= set(model.weights)
    assert list(model.horizons) == sorted(model.horizons)
    assert 0 < model.threshold < 1
    assert msgspec.json.decode(msgspec.json.encode(model), type=Model) == model


@pytest.mark.skipif(not TRACES.is_dir(), reason="the recorded traces are not part of the repository")
def test_on_typing_that_it_was_not_trained_on_most_needless_asks_are_suppressed_and_most_chances_kept():
    typed = list(pause_figures.moments(load(TRACES / "json-crdt-patch.ascii.json.gz")))
    adaptive = pause_figures.measure(typed)
    fixed = pause_figures.measure(typed, Debounce(mode="fixed", max_ms=200))
    assert adaptive.suppressed >= 0.70
    assert adaptive.kept >= 0.70
    assert adaptive.suppressed > fixed.suppressed
    assert adaptive.kept > fixed.kept
