from __future__ import annotations

import math

import pytest

np = pytest.importorskip("numpy", reason="comes with the native engine")
sampling = pytest.importorskip("monkeycode_lsp.engines.local.sampling")

ROW = [0.0, 3.0, 1.0, 3.0]


def row():
    return np.array(ROW, dtype=np.float32)


def logprob(token):
    return ROW[token] - math.log(sum(math.exp(value) for value in ROW))


def test_greedy_takes_the_first_of_the_likeliest_and_tells_its_probability():
    token, certainty = sampling.greedy(row())
    assert token == 1
    assert certainty == pytest.approx(logprob(1), abs=1e-6)


def test_at_temperature_zero_it_is_greedy():
    assert sampling.at_temperature(0.0, np.random.default_rng(1)) is sampling.greedy


def test_a_higher_temperature_draws_others_but_never_the_unlikely_ones():
    draw = sampling.at_temperature(1.5, np.random.default_rng(1))
    drawn = [draw(row()) for _ in range(300)]
    assert {token for token, _ in drawn} == {1, 2, 3}
    for token, certainty in drawn:
        assert certainty == pytest.approx(logprob(token), abs=1e-6)


def test_huge_logits_are_no_trouble():
    token, certainty = sampling.greedy(np.array([1e30, -1e30, 0.0], dtype=np.float32))
    assert (token, certainty) == (0, 0.0)
