"""Intervals and the paired test, against values worked out by hand or taken from tables."""

from __future__ import annotations

import pytest

from monkeycode_lsp.bench.quality import chance


@pytest.mark.parametrize(
    ("won", "lost", "p"),
    [(0, 0, 1.0), (1, 0, 1.0), (5, 5, 1.0), (5, 0, 0.0625), (0, 6, 0.03125), (1, 9, 22 / 1024), (10, 2, 158 / 4096), (2, 10, 158 / 4096)],
)
def test_mcnemar_is_the_exact_binomial_test_of_the_pairs_that_differ(won, lost, p):
    assert chance.mcnemar(won, lost) == pytest.approx(p)


def test_mcnemar_can_take_many_pairs():
    assert chance.mcnemar(1_000, 1_033) == pytest.approx(0.478, abs=0.01)
    assert 0 <= chance.mcnemar(0, 2_000) < 1e-100


@pytest.mark.parametrize(
    ("good", "n", "low", "high"), [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (5, 10, 0.2366, 0.7634), (81, 263, 0.2553, 0.3662)]
)
def test_wilsons_interval(good, n, low, high):
    found = chance.wilson(good, n)
    assert found.low == pytest.approx(low, abs=1e-4)
    assert found.high == pytest.approx(high, abs=1e-4)


def test_of_nothing_nothing_is_known():
    assert chance.wilson(0, 0) == chance.Interval(0.0, 1.0)
    assert chance.bootstrap([]) == chance.Interval(0.0, 0.0)


def test_the_bootstrap_is_the_same_each_time_and_holds_the_mean():
    differences = [1.0] * 12 + [0.0] * 80 + [-1.0] * 4
    found = chance.bootstrap(differences)
    assert found == chance.bootstrap(differences)
    assert found.low < 8 / 96 < found.high
    # The normal approximation: 8/96 ± 1.96 · sqrt(var / 96).
    assert found.low == pytest.approx(0.0833 - 0.0799, abs=0.012)
    assert found.high == pytest.approx(0.0833 + 0.0799, abs=0.012)


def test_the_bootstrap_of_equal_differences_is_a_point():
    assert chance.bootstrap([0.5] * 7) == chance.Interval(0.5, 0.5)
