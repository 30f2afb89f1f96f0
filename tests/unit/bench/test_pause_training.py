"""Training the pause model, and measuring debounces, on small traces made here."""

import random
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from click.testing import CliRunner

from monkeycode_lsp.bench import pause_figures, pause_training
from monkeycode_lsp.bench.pause_figures import Moment, measure, moments, ranked
from monkeycode_lsp.bench.replay.trace import Key, Patch, Trace
from monkeycode_lsp.config import Debounce
from monkeycode_lsp.domain import Window
from monkeycode_lsp.pause.model import Model

LINE = "value = other.call(item, 3)\n"


def trace(seed=0, n_lines=40):
    """Somebody who thinks at the end of a line and after a dot, and types evenly elsewhere."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    at_s, keys = 0.0, []
    for position, char in enumerate(LINE * n_lines):
        keys.append(Key(at_s, (Patch(position, 0, char),)))
        median_s = 1.2 if char in ".\n" else 0.15
        at_s += median_s * chance.lognormvariate(0, 0.25)
    return Trace(name="t", language="python", start="", keys=tuple(keys))


def moment(gap_ms, inserted="a"):
    return Moment(since_ms=100, inserted=inserted, window=Window("a", "", "python", "a.py"), gap_ms=gap_ms)


def test_a_model_that_was_trained_ranks_pauses_in_typing_it_has_not_seen():
    model = pause_training.train([trace], copies=2, respace=False)
    unseen = list(moments(trace(seed=9)))
    figures = measure(unseen, model=model)
    assert figures.auc > 0.8
    assert measure(unseen, model=msgspec.structs.replace(model, weights={})).auc < 0.6
    assert model.weights["last dot"] > model.weights["last lower"]
    assert list(model.baseline) == sorted(model.baseline)


def test_the_threshold_suppresses_as_much_as_it_should():
    typed = list(moments(trace()))
    figures = measure(typed, model=pause_training.train([trace], copies=1, respace=False))
    assert figures.suppressed == pytest.approx(pause_training._SUPPRESSED, abs=0.05)
    assert figures.kept > 0.5


def test_features_can_be_left_out():
    learned = pause_training.samples(list(moments(trace(n_lines=5))))
    model = pause_training.fit(learned, without=pause_training.TIMING)
    assert model.weights
    assert not [name for name in model.weights if name.startswith(pause_training.TIMING)]


def test_respacing_keeps_every_key_in_its_second_and_their_order():
    before, after = trace(), pause_training.respaced(trace(), seed=3)
    assert [int(key.at_s) for key in before.keys] == [int(key.at_s) for key in after.keys]
    assert [key.patches for key in before.keys] == [key.patches for key in after.keys]
    times = [key.at_s for key in after.keys]
    assert times == sorted(times) != [key.at_s for key in before.keys]


def test_the_figures_count_every_key_and_count_late_asks_as_needless():
    typed = [moment(100), moment(220), moment(300), moment(449), moment(450), moment(9_000)]
    figures = measure(typed, Debounce(mode="fixed", max_ms=200), engine_ms=250)
    assert (figures.n, figures.chances, figures.sent, figures.needless_sent, figures.seen) == (6, 4, 5, 1, 2)
    assert figures.kept == 0.5
    assert figures.suppressed == 1 - 3 / 2
    assert figures.needless_suppressed == 0.5


def test_without_a_wait_all_is_sent_and_all_chances_are_kept():
    figures = measure([moment(100), moment(300)], Debounce(mode="off"))
    assert (figures.suppressed, figures.kept) == (0, 1)


def test_keys_that_come_before_the_editor_asks_are_not_asked_for():
    figures = measure([moment(100), moment(300), moment(600)], Debounce(mode="fixed", max_ms=200), editor_ms=250)
    assert (figures.sent, figures.seen) == (2, 1)


def test_a_moment_shows_the_text_after_its_key():
    keys = (Key(0.0, (Patch(1, 0, "b"),)), Key(0.5, (Patch(0, 1, ""),)), Key(2.0, (Patch(0, 0, "z"),)))
    first, second = moments(Trace(name="t", language="c", start="ac", keys=keys))
    assert (first.window.prefix, first.window.suffix, first.inserted, first.since_ms, first.gap_ms) == ("ab", "c", "b", 0, 500)
    assert (second.window.prefix, second.window.suffix, second.inserted, second.since_ms, second.gap_ms) == ("", "bc", "", 500, 1_500)


def test_ranking_is_the_share_of_pairs_in_the_right_order():
    assert ranked([1, 2, 3, 4], [False, False, True, True]) == 1
    assert ranked([1, 2, 3, 4], [True, False, True, False]) == 0.25
    assert ranked([5, 5, 5, 5], [True, False, True, False]) == 0.5
    assert ranked([1, 2], [True, True]) == 0.5


def test_both_scripts_run_and_the_same_trace_gives_the_same_file(tmp_path):
    begin = datetime(2024, 1, 1, tzinfo=UTC)
    txns = [
        {
            "time": (begin + timedelta(seconds=int(key.at_s))).isoformat(),
            "patches": [list(msgspec.to_builtins(patch)) for patch in key.patches],
        }
        for key in trace(n_lines=8).keys
    ]
    source, once, twice = tmp_path / "t.json", tmp_path / "1.json", tmp_path / "2.json"
    source.write_bytes(msgspec.json.encode({"startContent": "", "endContent": LINE * 8, "txns": txns}))
    for out in (once, twice):
        result = CliRunner().invoke(pause_training.main, [str(source), "--out", str(out), "--copies", "2"])
        assert result.exit_code == 0, result.output
    assert once.read_bytes() == twice.read_bytes()
    assert msgspec.json.decode(once.read_bytes(), type=Model).weights
    result = CliRunner().invoke(pause_figures.main, [str(source), "--model", str(once)])
    assert result.exit_code == 0, result.output
    assert "adaptive" in result.output


@pytest.mark.parametrize("script", [pause_training.main, pause_figures.main])
def test_a_file_that_is_no_trace_is_said_so(tmp_path, script):
    source = tmp_path / "t.json"
    source.write_text("nonsense")
    options = ["--out", str(tmp_path / "o.json")] if script is pause_training.main else []
    result = CliRunner().invoke(script, [str(source), *options])
    assert result.exit_code == 1
    assert "t.json" in result.output
    assert not (tmp_path / "o.json").exists()
