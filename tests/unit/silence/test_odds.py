"""How likely a suggestion is to be wanted, by what the model says of it."""

import math

import pytest

from monkeycode_lsp.silence.odds import odds


def test_the_surer_the_model_the_better():
    chances = [odds(mean, "return total") for mean in (-3.0, -1.5, -0.8, -0.3, 0.0)]
    assert chances == sorted(chances)
    assert chances[0] < 0.02
    assert chances[-1] > 0.5


def test_the_longer_the_answer_the_worse():
    assert odds(-0.5, "x") > odds(-0.5, "x" * 30) > odds(-0.5, "x" * 300)


def test_prose_is_harder_to_guess_than_code():
    assert odds(-0.5, "the value", is_comment=True) < odds(-0.5, "the value")


@pytest.mark.parametrize("confidence", [math.nan, math.inf, -math.inf, -1e308, 1.0, 5e-324])
@pytest.mark.parametrize("text", ["", "\0", "\ud800", " " * 9, "x" * 100_000])
def test_nothing_that_an_engine_may_say_breaks_it(confidence, text):
    assert 0 < odds(confidence, text) < 1
