"""The real samplers over a row of the real model."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from monkeycode_lsp.domain import Sampling
from monkeycode_lsp.engines.local.batch.runtime import Row
from monkeycode_lsp.engines.local.decoder import GenerationError
from monkeycode_lsp.engines.local.wire import Generate

np = pytest.importorskip("numpy", reason="needs the native engine")
sampling = pytest.importorskip("monkeycode_lsp.engines.local.llama.sampling", reason="needs the native engine")

pytestmark = [pytest.mark.model, pytest.mark.native]


@pytest.fixture
def row(runtime):
    """A row after which the model has several ideas."""
    tokens = runtime.tokenize("#!/usr/bin/env python3\nimport")
    last = len(tokens) - 1
    assert runtime.decode([Row(token, n, 0, n == last) for n, token in enumerate(tokens)], lambda: False)
    return last


@pytest.fixture
def probabilities(runtime, row):
    logits = runtime.logits(row).astype(np.float64)
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


@pytest.fixture
def sampler(runtime):
    """Makes samplers and closes them."""
    made = []

    def make(grammar="", **options):
        made.append(runtime.sampler(Generate(1, (), sampling=Sampling(**options), grammar=grammar)))
        return made[-1]

    yield make
    for each in made:
        each.close()


def spell(runtime, sampler, row, n=12):
    """Draw from the same row again and again: only what the sampler remembers makes a difference."""
    drawn = []
    while len(drawn) < n and not (drawn and runtime.ends(drawn[-1])):
        drawn.append(sampler.draw(row)[0])
    return drawn


def text(runtime, tokens):
    return b"".join(map(runtime.piece, tokens)).decode(errors="replace")


def test_without_a_temperature_it_is_the_likeliest_token_each_time(sampler, row, probabilities):
    one = sampler()
    assert [one.draw(row)[0] for _ in range(5)] == [int(probabilities.argmax())] * 5


@pytest.mark.parametrize("options", [{}, {"temperature": 1.3, "min_p": 0.0}, {"repeat_penalty": 2.0}, {"temperature": 0.4, "top_p": 0.9}])
def test_the_probability_is_the_models_own(sampler, row, probabilities, options):
    one = sampler(**options)
    for _ in range(20):
        token, logprob = one.draw(row)
        assert logprob == pytest.approx(math.log(probabilities[token]), abs=1e-3)


def test_the_same_seed_draws_the_same_and_another_one_does_not(runtime, sampler, row):
    def draws(seed):
        return spell(runtime, sampler(temperature=1.5, min_p=0.0, seed=seed), row, 30)

    assert draws(7) == draws(7)
    assert draws(7) != draws(8)
    assert draws(None) != draws(None)
    assert draws(-1) == draws(-1)
    assert draws(2**32 - 1) == draws(2**32 - 1)


def test_draws_at_temperature_one_follow_the_probabilities(sampler, row, probabilities):
    one = sampler(temperature=1.0, min_p=0.0, seed=1)
    drawn = Counter(one.draw(row)[0] for _ in range(800))
    for token in np.argsort(probabilities)[-5:]:
        assert drawn[int(token)] / 800 == pytest.approx(probabilities[token], abs=0.06)


def test_min_p_leaves_only_what_is_likely_enough(sampler, row, probabilities):
    likely = set(np.flatnonzero(probabilities >= 0.05 * probabilities.max()).tolist())
    one = sampler(temperature=2.0, min_p=0.05, seed=1)
    assert {one.draw(row)[0] for _ in range(300)} == likely
    assert len(likely) > 2
    assert {sampler(temperature=2.0, min_p=1.0).draw(row)[0] for _ in range(5)} == {int(probabilities.argmax())}


def test_top_p_leaves_the_smallest_set_that_makes_up_the_share(sampler, row, probabilities):
    order = np.argsort(-probabilities)
    n_likely = int(np.searchsorted(np.cumsum(probabilities[order]), 0.7)) + 1
    one = sampler(temperature=3.0, top_p=0.7, min_p=0.0, seed=1)
    assert {one.draw(row)[0] for _ in range(300)} == set(order[:n_likely].tolist())
    assert n_likely > 2


@pytest.mark.parametrize("temperature", [0.0, 0.001])
def test_what_was_said_becomes_less_likely(runtime, sampler, row, temperature):
    logits = runtime.logits(row).copy()
    one = sampler(temperature=temperature, repeat_penalty=2.0)
    for _ in range(4):
        expected = int(logits.argmax())
        assert one.draw(row)[0] == expected
        if logits[expected] == runtime.logits(row)[expected]:  # however often it was said
            logits[expected] *= 0.5 if logits[expected] > 0 else 2.0


@pytest.mark.parametrize("options", [{}, {"temperature": 1.2, "min_p": 0.0, "seed": 3}, {"repeat_penalty": 1.5}])
def test_an_answer_obeys_its_grammar_and_ends_with_it(runtime, sampler, row, probabilities, options):
    one = sampler('root ::= "[" [0-9] [0-9] "]"', **options)
    drawn = spell(runtime, one, row)
    said = text(runtime, drawn)
    assert (said[0], said[-1], said[1:-1].isdigit(), len(said)) == ("[", "]", True, 4)
    assert runtime.ends(drawn[-1])


def test_a_grammar_that_allows_the_likeliest_token_changes_nothing(runtime, sampler, row, probabilities):
    token, logprob = sampler("root ::= [^\\x00]*").draw(row)
    assert token == int(probabilities.argmax())
    assert logprob == pytest.approx(math.log(probabilities[token]), abs=1e-3)


def test_a_grammar_never_means_a_control_token(runtime, sampler, row):
    marker, bracket = runtime.control("<|fim_prefix|>"), runtime.tokenize("<")[0]
    assert sampler('root ::= "<|fim_prefix|>"').draw(row, [marker, bracket])[0] == bracket
    with pytest.raises(GenerationError):
        sampler('root ::= "<|fim_prefix|>"').draw(row, [marker])


@pytest.mark.parametrize("grammar", ["root ::= (", "nothing", "root ::= other", 'other ::= "x"', 'root ::= root "x"', 'root ::= "x"\0'])
def test_a_grammar_that_cannot_be_read_is_refused_in_words(sampler, grammar):
    with pytest.raises(GenerationError, match="cannot read the grammar") as caught:
        sampler(grammar)
    assert caught.value.kind == "grammar"


@pytest.mark.parametrize("options", [{}, {"temperature": 1.5, "min_p": 0.0, "seed": 2}, {"repeat_penalty": 3.0}])
def test_only_the_given_tokens_are_drawn(runtime, sampler, row, probabilities, options):
    among = [runtime.tokenize(word)[0] for word in ("zebra", "7", "qux")]
    for grammar in ("", "root ::= [0-9a-z_]+"):
        one = sampler(grammar, **options)
        for _ in range(6):
            token, logprob = one.draw(row, among)
            assert token in among
            assert logprob == pytest.approx(math.log(probabilities[token] / probabilities[among].sum()), abs=1e-3), "among these"


def test_given_tokens_that_the_grammar_forbids_are_refused_in_words(runtime, sampler, row):
    with pytest.raises(GenerationError) as caught:
        sampler("root ::= [0-9]+").draw(row, runtime.tokenize("zebra")[:1])
    assert caught.value.kind == "grammar"


@pytest.mark.parametrize("grammar", ["root ::= " + "(" * 200_000 + '"a"' + ")" * 200_000, 'root ::= "' + "a" * 100_000 + '"'])
def test_a_grammar_that_would_end_the_process_is_refused(sampler, grammar):
    with pytest.raises(GenerationError) as caught:
        sampler(grammar)
    assert caught.value.kind == "grammar"
