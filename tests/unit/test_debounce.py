"""How long an ask waits."""

import msgspec
import pytest

from monkeycode_lsp import config
from monkeycode_lsp.debounce import Rhythm, delay_ms
from tests.unit.places import ask, at

FIXED = config.Debounce(mode="fixed", max_ms=200)
ADAPTIVE = config.Debounce()
BUSY = "x = 1 + yes‸"


def asked(marked=BUSY, *, inserted="s", **how):
    how.setdefault("since_edit_ms", 0.0)
    return msgspec.structs.replace(ask(marked, **how), inserted=inserted)


def wait(marked=BUSY, settings=ADAPTIVE, rhythm=None, **how):
    return delay_ms(asked(marked, **how), at(marked), rhythm or Rhythm(), settings)


def typed(text, gap_ms=150.0, rhythm=None):
    rhythm = rhythm or Rhythm()
    for char in text:
        rhythm = rhythm.with_key(gap_ms, char)
    return rhythm


@pytest.mark.parametrize("settings", [FIXED, ADAPTIVE])
def test_an_ask_by_hand_or_without_an_edit_never_waits(settings):
    assert wait(settings=settings, invoked=True) == 0
    assert wait(settings=settings, since_edit_ms=None) == 0


def test_off_never_waits():
    assert wait(settings=config.Debounce(mode="off")) == 0


def test_what_the_editor_has_waited_counts():
    assert wait(settings=FIXED, since_edit_ms=50) == 150
    assert wait(settings=FIXED, since_edit_ms=250) == 0
    whole = wait("import os‸", rhythm=typed("import os"))
    assert whole > 40
    assert wait("import os‸", rhythm=typed("import os"), since_edit_ms=40) <= whole - 40
    assert wait("import os‸", rhythm=typed("import os"), since_edit_ms=ADAPTIVE.max_ms) == 0


@pytest.mark.parametrize("inserted", ["\n", "\n        ", "(", "()", "{", "a whole accepted line"])
def test_after_a_new_line_an_opener_or_an_accepted_text_nothing_is_waited_for(inserted):
    rhythm = Rhythm(engine_ms=900)
    assert wait("f‸", inserted="f", rhythm=rhythm) > 0
    assert wait(f"f{inserted}‸", inserted=inserted, rhythm=rhythm) == 0
    assert wait(f"f{inserted}‸", config.Debounce(min_ms=30), inserted=inserted, rhythm=rhythm) == 30
    assert wait(f"f{inserted}‸", FIXED, inserted=inserted, rhythm=rhythm) == 200


@pytest.mark.parametrize("engine_ms", [0.0, 20.0, 250.0, 5_000.0])
@pytest.mark.parametrize("bounds", [(0, 300), (40, 40), (100, 250), (200, 100)])
def test_the_wait_stays_inside_its_bounds(engine_ms, bounds):
    settings = config.Debounce(min_ms=bounds[0], max_ms=bounds[1])
    for text in ("x", "foo.bar", "// done.", "    return wor", '"'):
        rhythm = msgspec.structs.replace(typed(text), engine_ms=engine_ms)
        assert bounds[0] <= wait(text + "‸", settings, rhythm, inserted=text[-1]) <= max(bounds)


def test_a_slow_engine_is_asked_later_than_a_fast_one():
    waits = [wait("foo = wor‸", rhythm=typed("foo = wor", rhythm=Rhythm(engine_ms=ms)), inserted="r") for ms in (20, 250, 2_000)]
    assert waits[0] == 0
    assert waits == sorted(waits)
    assert waits[-1] == ADAPTIVE.max_ms


def test_somebody_who_types_slowly_is_answered_between_two_keys():
    fast, slow = typed("foo bar baz " * 9 + "wo", 60), typed("foo bar baz " * 9 + "wo", 400)
    assert fast.habit.unit_ms < 100
    assert slow.habit.unit_ms > 250
    assert wait("wo‸", rhythm=fast, inserted="o") > 150
    assert wait("wo‸", rhythm=slow, inserted="o") == 0


def test_pauses_say_nothing_about_the_usual_gap():
    steady = typed("words " * 10)
    assert steady.with_key(60_000, "x").habit.unit_ms < 1.1 * steady.habit.unit_ms


def test_predictions_that_were_wrong_move_the_users_intercept_and_never_far():
    def ended(gap_ms, n):
        rhythm = Rhythm()
        for _ in range(n):
            rhythm = rhythm.with_key(gap_ms, "a").with_asked(asked("a‸", inserted="a"), at("a‸"))
        return rhythm.bias

    assert ended(100, 1) == 0  # nothing was predicted before the first key
    assert -1 <= ended(100, 1_000) < ended(100, 5) < 0 < ended(5_000, 5) < ended(5_000, 1_000) <= 1


def test_who_pauses_more_than_predicted_is_asked_for_sooner():
    busy, idle = (msgspec.structs.replace(typed("f(word)"), bias=bias) for bias in (-0.9, 0.9))
    assert wait("f(word)‸", rhythm=idle, inserted=")") < wait("f(word)‸", rhythm=busy, inserted=")")


def test_a_prediction_is_for_the_time_from_the_ask_on():
    window = at(BUSY)
    waited = Rhythm().with_asked(asked(since_edit_ms=200.0), window).expected
    assert waited.needed_ms == 450
    assert waited.chance > Rhythm().with_asked(asked(), window).expected.chance
    assert Rhythm().with_asked(asked(since_edit_ms=None), window).expected is None


def test_one_prediction_is_learned_from_once():
    rhythm = Rhythm().with_asked(asked(), at(BUSY)).with_key(100, "a")
    assert rhythm.expected is None
    assert rhythm.with_key(100, "a").bias == rhythm.bias != 0


def test_the_engines_latency_is_a_moving_average():
    assert Rhythm().with_engine(50).engine_ms == 50, "nothing was known before"
    slow = Rhythm().with_engine(50)
    for _ in range(20):
        slow = slow.with_engine(50)
    assert 50 < slow.with_engine(1000).engine_ms < 300


@pytest.mark.parametrize("gap_ms", [-5.0, 0.0, float("inf"), float("nan"), 1e12])
def test_clocks_that_jump_do_no_harm(gap_ms):
    rhythm = typed("abc", gap_ms)
    assert 0 <= wait("abc‸", rhythm=rhythm) <= ADAPTIVE.max_ms
    assert 20 <= rhythm.habit.unit_ms <= 5_000
