"""The circuit breaker, on a clock of the test's own."""

from __future__ import annotations

from monkeycode_lsp.recall.breaker import FAILURE, SLOW, Breaker


def opened(**how):
    breaker = Breaker(**how)
    assert [breaker.bad(0.0) for _ in range(3)] == [False, False, True]
    return breaker


def test_one_failure_does_not_open_it():
    breaker = Breaker()
    assert not breaker.bad(0.0)
    assert not breaker.is_open
    assert breaker.passes(0.0)


def test_three_failures_in_a_row_open_it_and_tell_so_once():
    breaker = opened()
    assert breaker.is_open
    assert not breaker.bad(0.0)


def test_a_good_answer_between_failures_starts_the_count_anew():
    breaker = Breaker()
    for _ in range(5):
        assert not breaker.bad(0.0)
        assert not breaker.bad(0.0)
        assert not breaker.good(0.0)
    assert not breaker.is_open


def test_slow_answers_count_less():
    breaker = Breaker()
    assert [breaker.bad(0.0, SLOW) for _ in range(9)] == [False] * 8 + [True]
    mixed = Breaker()
    assert [mixed.bad(0.0, strikes) for strikes in (FAILURE, FAILURE, SLOW, SLOW, SLOW)] == [False] * 4 + [True]


def test_while_it_rests_nothing_passes_and_then_exactly_one_probe():
    breaker = opened()
    assert not breaker.passes(0.99)
    assert breaker.passes(1.0)
    assert not breaker.passes(1.0)
    assert breaker.is_open


def test_a_good_probe_closes_it():
    breaker = opened()
    assert breaker.passes(1.0)
    assert breaker.good(1.1)
    assert not breaker.is_open
    assert breaker.passes(1.1)


def test_each_bad_probe_doubles_the_rest_up_to_a_bound():
    breaker = opened()
    now, rests = 0.0, []
    for _ in range(9):
        begun = now
        while not breaker.passes(now):
            now += 0.5
        rests.append(now - begun)
        assert not breaker.bad(now)
    assert rests == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_late_words_from_before_it_opened_change_nothing():
    breaker = opened()
    assert not breaker.good(0.5)
    assert not breaker.bad(0.5)
    assert breaker.is_open
    assert breaker.passes(1.0)


def test_one_that_opens_again_soon_rests_longer():
    breaker = opened()
    assert breaker.passes(1.0)
    breaker.good(1.0)
    for _ in range(3):
        breaker.bad(2.0)
    assert not breaker.passes(3.9)
    assert breaker.passes(4.0)


def test_one_that_was_in_order_for_long_rests_shortly_again():
    breaker = opened()
    assert breaker.passes(1.0)
    breaker.good(1.0)
    for _ in range(3):
        breaker.bad(100.0)
    assert breaker.passes(101.0)
