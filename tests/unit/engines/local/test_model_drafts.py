from __future__ import annotations

import pytest

from monkeycode_lsp.engines.local.batch.model_drafts import ModelDrafts
from tests.unit.engines.local.toy import END, ToyRuntime, checksum


def following(tokens, n):
    """What the model says greedily."""
    cells = list(tokens)
    for _ in range(n):
        cells.append(checksum(cells))
    return cells[len(tokens) :]


class Drafts:
    """Model drafts over a toy model, with a clock that goes by its rows."""

    def __init__(self, **more):
        self.runtime = ToyRuntime(n_sequences=1, **more)
        self.drafts = ModelDrafts(self.runtime, clock=lambda: sum(0.01 + 0.001 * len(rows) for rows in self.runtime.batches))

    def propose(self, tokens, n):
        """The guesses, and the rows that were read for them."""
        n_before = sum(map(len, self.runtime.batches))
        guessed = self.drafts.propose(tokens, n)
        return guessed, sum(map(len, self.runtime.batches)) - n_before


@pytest.fixture
def drafts():
    return Drafts()


def test_the_likeliest_tokens_are_guessed(drafts):
    tokens = list(b"def area(")
    assert drafts.propose(tokens, 5) == (following(tokens, 5), len(tokens) + 4)


def test_only_what_is_new_is_read(drafts):
    tokens = list(b"def area(")
    guessed, _ = drafts.propose(tokens, 4)
    longer = [*tokens, *guessed, 7]
    assert drafts.propose(longer, 2) == (following(longer, 2), 3)


def test_what_was_guessed_wrong_is_cut_off(drafts):
    tokens = list(b"def area(")
    guessed, _ = drafts.propose(tokens, 6)
    longer = [*tokens, guessed[0], 7]
    assert drafts.propose(longer, 3) == (following(longer, 3), 3)


def test_another_prompt_shares_what_it_can(drafts):
    drafts.propose(list(b"def area(a"), 3)
    other = list(b"def size(b")
    assert drafts.propose(other, 2) == (following(other, 2), 6 + 1)


def test_the_same_tokens_again_read_the_last_one(drafts):
    tokens = list(b"def area(")
    drafts.propose(tokens, 1)
    assert drafts.propose(tokens, 1) == (following(tokens, 1), 1)


def test_a_cache_that_cannot_be_cut_is_read_again():
    drafts = Drafts(can_cut=False)
    tokens = list(b"def area(")
    drafts.propose(tokens, 5)
    other = [*tokens[:4], 7]
    assert drafts.propose(other, 2) == (following(other, 2), len(other) + 1)


def test_one_call_reads_one_batch_and_guesses_when_all_is_read():
    drafts = Drafts(batch_tokens=16)
    tokens = list(b"0123456789" * 4)
    assert [drafts.propose(tokens, 2) for _ in range(3)] == [([], 16), ([], 16), (following(tokens, 2), 8 + 1)]


def test_a_guess_ends_where_the_answer_would():
    drafts = Drafts(says=lambda cells: END if len(cells) > 12 else 65)
    assert drafts.propose(list(b"0123456789"), 8)[0] == [65, 65, 65]


@pytest.mark.parametrize(("n_tokens", "n", "expected"), [(60, 9, 4), (64, 3, 0), (70, 3, 0), (0, 3, 0), (5, 0, 0)])
def test_the_window_and_the_question_bound_the_guess(n_tokens, n, expected):
    drafts = Drafts(context_tokens=64)
    assert len(drafts.propose([1] * n_tokens, n)[0]) == expected


def test_a_model_that_fails_makes_no_guess_and_starts_anew(drafts, caplog):
    tokens = list(b"def area(")
    drafts.propose(tokens, 3)
    drafts.runtime.fails = True
    assert drafts.propose([*tokens, 1], 3)[0] == []
    assert "no guess" in caplog.text
    drafts.runtime.fails = False
    assert drafts.propose(tokens, 3) == (following(tokens, 3), len(tokens) + 2)


@pytest.mark.parametrize(("can_cut", "n_read"), [(True, 2), (False, 11)])
def test_a_batch_that_was_not_read_whole_is_cut_off_again(can_cut, n_read):
    drafts = Drafts(can_cut=can_cut)
    tokens = list(b"def area(")
    drafts.propose(tokens, 1)
    decode = drafts.runtime.decode
    drafts.runtime.decode = lambda rows, should_stop: decode(rows, lambda: True)
    assert drafts.propose([*tokens, 5, 6], 3)[0] == []
    drafts.runtime.decode = decode
    assert drafts.propose([*tokens, 5, 6], 1) == (following([*tokens, 5, 6], 1), n_read)


def test_what_it_costs_is_learned(drafts):
    tokens = list(b"0123456789") * 40
    while not drafts.propose(tokens, 4)[0]:
        pass
    assert drafts.drafts.token_ms() == pytest.approx(11)
    assert drafts.drafts.lag_ms(tokens) == 0
    # 101 tokens are new to it, and the last one's decode is the guess's.
    assert drafts.drafts.lag_ms([*tokens, *tokens[1:102]]) == pytest.approx(10 + 100, rel=0.1)
    assert drafts.drafts.lag_ms(tokens[1:]) == pytest.approx(3 * (10 + 128) + 10 + 14, rel=0.1)


def test_the_sampler_is_given_back(drafts):
    drafts.drafts.close()
    drafts.propose([1, 2, 3], 1)
    assert drafts.runtime.n_open == 1
    drafts.drafts.close()
    assert drafts.runtime.n_open == 0
