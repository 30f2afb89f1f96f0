"""How long an ask waits."""

import pytest

from monkeycode_lsp import config
from monkeycode_lsp.debounce import Rhythm, delay_ms
from tests.unit.places import ask, at

FIXED = config.Debounce(mode="fixed", max_ms=200)
ADAPTIVE = config.Debounce()


def wait(marked="x = 1 + y‸", settings=ADAPTIVE, rhythm=None, **how):
    how.setdefault("since_edit_ms", 0.0)
    return delay_ms(ask(marked, **how), at(marked), rhythm or Rhythm(), settings)


@pytest.mark.parametrize("settings", [FIXED, ADAPTIVE])
def test_an_ask_by_hand_or_without_an_edit_never_waits(settings):
    assert wait(settings=settings, invoked=True) == 0
    assert wait(settings=settings, since_edit_ms=None) == 0


def test_what_the_editor_has_waited_counts():
    assert wait(settings=FIXED, since_edit_ms=50) == 150
    assert wait(settings=FIXED, since_edit_ms=250) == 0


def test_off_never_waits():
    assert wait(settings=config.Debounce(mode="off")) == 0


def test_a_slow_engine_waits_longer_than_a_fast_one_and_never_beyond_the_bounds():
    slow, fast = Rhythm(engine_ms=900), Rhythm(engine_ms=20)
    assert wait(rhythm=fast) < wait(rhythm=slow) <= ADAPTIVE.max_ms
    assert wait(rhythm=Rhythm(gap_ms=5_000, engine_ms=5_000)) == ADAPTIVE.max_ms
    assert wait(rhythm=fast, settings=config.Debounce(min_ms=40)) >= 40


def test_the_wait_for_a_slow_engine_outlasts_a_run_of_typing_and_that_for_a_fast_one_does_not():
    assert wait(rhythm=Rhythm(gap_ms=50, engine_ms=1_000)) > 50
    assert wait(rhythm=Rhythm(gap_ms=50, engine_ms=100)) < 20


def test_after_an_opener_or_on_a_fresh_line_the_wait_is_short():
    assert wait("f(‸") < wait("f‸")
    assert wait("def f():\n    ‸") < wait("f‸")


def test_the_rhythm_learns_from_gaps_but_not_from_pauses():
    rhythm = Rhythm(gap_ms=200)
    assert rhythm.with_gap(5_000) == rhythm
    assert 100 < rhythm.with_gap(100).gap_ms < 200
    assert rhythm.with_engine(50).engine_ms < rhythm.engine_ms
