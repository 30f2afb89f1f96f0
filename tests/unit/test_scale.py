"""How much of the budget is used: by what the model takes, and by what this machine reads in time."""

import pytest

from monkeycode_lsp import config
from monkeycode_lsp.errors import ContextOverflowError
from monkeycode_lsp.scale import Scale

SETTINGS = config.Config(context=config.Context(prefix_tokens=1000, suffix_tokens=300, snippet_tokens=700))


def test_what_is_read_in_time_counts_snippets_too():
    scale = Scale(SETTINGS, read_s=2.0)
    scale.learn(500, 1000.0)  # 1,000 tokens in the time, and 2,000 are wanted
    assert scale.value == pytest.approx(0.5)


def test_it_grows_with_the_next_document_only():
    scale = Scale(SETTINGS, read_s=2.0)
    scale.working_on("a")
    scale.learn(500, 1000.0)
    scale.learn(500, 100.0)
    assert scale.value == pytest.approx(0.5)
    scale.working_on("b")
    assert scale.value == 1.0


def test_a_few_tokens_and_small_differences_tell_nothing():
    scale = Scale(SETTINGS, read_s=2.0)
    scale.learn(10, 10_000.0)
    scale.learn(None, 10_000.0)
    scale.learn(500, 700.0)
    assert scale.value == 1.0


def test_a_model_that_takes_less_is_given_less_from_then_on():
    scale = Scale(SETTINGS)
    assert scale.overflowed(ContextOverflowError("too long", limit_tokens=1096))
    assert scale.value == pytest.approx(0.8 * 1000 / 2000)
    assert scale.overflowed(ContextOverflowError("too long", limit_tokens=None))
    assert scale.value == pytest.approx(0.16)


def test_who_takes_nothing_is_asked_no_more():
    scale = Scale(SETTINGS)
    assert not scale.overflowed(ContextOverflowError("too long", limit_tokens=90))


@pytest.mark.parametrize(
    ("read_tokens", "window", "snippets"), [(2000, 1.0, 1.0), (1330, 1.0, 0.0), (1000, 1000 / 1300, 0.0), (650, 0.5, 0.0)]
)
def test_other_files_give_way_before_what_is_near_the_cursor(read_tokens, window, snippets):
    scale = Scale(SETTINGS, read_s=1.0)
    scale.learn(read_tokens, 1000.0)
    assert (scale.window, scale.snippets) == (pytest.approx(window), pytest.approx(snippets))
