from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.engines.remote.pool.latency import N_ENOUGH, N_KEPT, Latencies, is_much_slower


def of(times: list[float]) -> Latencies:
    made = Latencies()
    for seconds in times:
        made.add(seconds)
    return made


def test_nothing_is_known_from_a_few_answers() -> None:
    assert of([0.1] * (N_ENOUGH - 1)).usual_s() is None
    assert of([0.1] * N_ENOUGH).usual_s() == pytest.approx(0.1)


def test_one_slow_answer_in_a_hundred_is_not_usual_and_ten_are() -> None:
    assert of([0.1] * 99 + [5.0]).usual_s() == pytest.approx(0.1)
    assert of([0.1] * 90 + [5.0] * 10).usual_s() == pytest.approx(5.0)


def test_old_answers_are_forgotten() -> None:
    assert of([9.0] * 500 + [0.1] * N_KEPT).usual_s() == pytest.approx(0.1)


def test_the_figure_follows_what_was_added_after_it_was_asked_for() -> None:
    latencies = of([0.1] * N_ENOUGH)
    assert latencies.usual_s() == pytest.approx(0.1)
    for _ in range(N_KEPT):
        latencies.add(2.0)
    assert latencies.usual_s() == pytest.approx(2.0)


def test_the_pace_is_that_of_the_last_few_and_one_slow_answer_does_not_raise_it() -> None:
    assert of([]).pace_s is None
    assert of([0.1]).pace_s == pytest.approx(0.1)
    assert of([0.1] * 5 + [9.0]).pace_s == pytest.approx(0.1)
    assert of([0.1] * 5 + [9.0] * 3).pace_s == pytest.approx(9.0)


def test_one_quick_answer_is_enough_for_another_try() -> None:
    assert of([9.0] * 50 + [0.1]).pace_s == pytest.approx(0.1)
    assert of([9.0] * 50 + [0.1, 9.0]).pace_s == pytest.approx(9.0)


def test_a_few_answers_are_held_against_it_only_if_they_took_very_long() -> None:
    assert [of([0.5] * n).is_certain for n in range(4)] == [False, False, False, True]
    assert of([1.5]).is_certain


def test_a_silence_counts_where_it_is_longer_than_what_is_known() -> None:
    latencies = of([])
    latencies.silent(0.01)
    assert latencies.pace_s is None
    latencies.silent(1.5)
    assert latencies.pace_s == pytest.approx(1.5)
    latencies.silent(0.5)
    assert latencies.pace_s == pytest.approx(1.5)


@given(st.floats(0, 100), st.floats(0, 100))
def test_of_two_not_each_is_much_slower_than_the_other_and_what_nobody_sees_is_not_much(one: float, other: float) -> None:
    assert not (is_much_slower(one, other) and is_much_slower(other, one))
    if one < other + 0.09 or one < 2.9 * other:
        assert not is_much_slower(one, other)


@given(st.lists(st.floats(0, 100), min_size=N_ENOUGH, max_size=3 * N_KEPT))
def test_it_is_one_of_the_last_answers_and_most_are_not_slower(times: list[float]) -> None:
    usual_s = of(times).usual_s()
    kept = times[-N_KEPT:]
    assert usual_s in kept
    assert sum(seconds <= usual_s for seconds in kept) >= 0.9 * len(kept)
