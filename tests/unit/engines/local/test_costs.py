from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.engines.local.batch.costs import Costs

CURVE = {1: 17, 2: 42, 3: 51, 4: 54, 5: 70, 8: 75, 9: 92, 16: 102, 17: 122, 32: 190, 64: 332, 128: 640}
"""Milliseconds by rows, measured with a 0.5B model on two processors."""


@pytest.fixture
def costs():
    return Costs()


@pytest.fixture
def measured(costs):
    for n_rows, ms in CURVE.items():
        costs.observe(n_rows, ms)
    return costs


def test_nothing_known_is_a_decode_that_gets_a_tenth_dearer_with_each_row(costs):
    assert [costs.of(n) for n in (1, 2, 11)] == pytest.approx([1.1, 1.2, 2.1])
    assert costs.pays_together(2)


def test_one_thing_known_gives_the_others_their_proportion(costs):
    costs.observe(1, 17)
    assert costs.of(1) == 17
    assert costs.of(12) == pytest.approx(34)
    costs = Costs()
    costs.observe(128, 690)
    assert costs.of(1) == pytest.approx(55)


def test_what_was_seen_is_believed(measured):
    assert {n: measured.of(n) for n in CURVE if n <= 16} == {n: ms for n, ms in CURVE.items() if n <= 16}
    assert {n: measured.of(n) for n in (32, 64, 128)} == {n: CURVE[n] for n in (32, 64, 128)}


def test_between_two_that_were_seen_lies_a_line(measured):
    assert measured.of(6) == pytest.approx(70 + (75 - 70) / 3)
    assert measured.of(96) == pytest.approx((332 + 640) / 2)


def test_two_rows_that_cost_more_than_two_decodes_do_not_pay_and_four_do(measured):
    assert [n for n in range(1, 10) if measured.pays_together(n)] == [1, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize(("n_rows", "ms"), [(0, 5), (-1, 5), (1, 0), (1, -3), (1, math.nan), (1, math.inf)])
def test_nonsense_teaches_nothing(measured, n_rows, ms):
    measured.observe(n_rows, ms)
    assert measured.of(1) == 17


def test_a_busy_moment_distorts_little_and_is_soon_forgotten(measured):
    for _ in range(3):
        measured.observe(4, 500)
    assert measured.of(4) < 54 * 1.34
    for _ in range(8):
        measured.observe(4, 54)
    assert measured.of(4) < 54 * 1.03
    assert measured.pays_together(4)


def test_a_slow_first_decode_is_corrected_by_the_next_ones(costs):
    costs.observe(1, 300)
    for _ in range(12):
        costs.observe(1, 17)
    assert costs.of(1) < 20


def test_a_machine_that_got_slower_is_noticed(measured):
    for _ in range(40):
        measured.observe(1, 34)
    assert measured.of(1) > 33


def test_contexts_of_different_length_leave_comparisons_as_they_are(costs):
    for n in range(300):
        stretch = 1 + 0.4 * (n * 7 % 11) / 10
        for n_rows in (1, 2, 4, 8):
            costs.observe(n_rows, CURVE[n_rows] * stretch)
    assert [costs.of(n) / costs.of(1) for n in (2, 4, 8)] == pytest.approx([CURVE[n] / 17 for n in (2, 4, 8)], rel=0.02)
    assert not costs.pays_together(2)
    assert costs.pays_together(4)


def times_together(costs, two_ms):
    """Two rows are believed to take 42 ms and take `two_ms`: how often a scheduler decodes them together in 20,000 steps."""
    costs.observe(1, 17)
    costs.observe(2, 42)
    n_together = 0
    for _ in range(20_000):
        if costs.pays_together(2):
            n_together += 1
            costs.observe(2, two_ms)
        else:
            costs.observe(1, 17)
    return n_together


def test_a_wrong_belief_is_tried_again_and_heals(costs):
    """Two rows were only seen while the machine was busy; from then on the scheduler avoids them."""
    assert times_together(costs, two_ms=20) > 10_000


def test_a_right_belief_is_tried_again_rarely(costs):
    assert 1 <= times_together(costs, two_ms=42) <= 20


def test_the_memory_is_bounded(costs):
    for n_rows in range(1, 4097):
        costs.observe(n_rows, n_rows)
    assert len(costs._places) == len(costs._ms) == len(costs._seen) == len(costs._times) == 32


@given(st.lists(st.tuples(st.integers(1, 5000), st.floats(0.01, 1e5)), max_size=60), st.integers(-3, 10_000))
def test_every_belief_is_a_positive_number(seen, n_rows):
    costs = Costs()
    for rows, ms in seen:
        costs.observe(rows, ms)
    assert 0 < costs.of(n_rows) < math.inf


@given(st.lists(st.floats(10, 20), min_size=1, max_size=40), st.integers(1, 16))
def test_a_belief_lies_among_what_was_seen(seen, n_rows):
    costs = Costs()
    for ms in seen:
        costs.observe(n_rows, ms)
    assert min(seen) * (1 - 1e-9) <= costs.of(n_rows) <= max(seen) * (1 + 1e-9)
