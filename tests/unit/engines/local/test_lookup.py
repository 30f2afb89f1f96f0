from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.engines.local.batch.lookup import Lookup

CONTROL = 99


def ends(token):
    return token == CONTROL


def lookup(*tokens):
    return Lookup(tokens, ends)


def said(found, n=3):
    match = found.find()
    return None if match is None else (match.n_tokens, found.after(match, n))


def test_what_followed_the_same_tokens_is_found():
    assert said(lookup(1, 2, 3, 4, 5, 8, 1, 2)) == (2, [3, 4, 5])


def test_one_token_in_common_is_not_enough():
    assert said(lookup(1, 2, 3, 4, 2)) is None


def test_a_longer_match_is_better_than_a_later_one():
    assert said(lookup(7, 1, 2, 3, 8, 1, 2, 4, 7, 1, 2), 1) == (3, [3])


def test_of_equals_the_latest_is_taken():
    assert said(lookup(1, 2, 3, 8, 1, 2, 4, 9, 1, 2), 1) == (2, [4])


def test_a_long_chain_is_not_walked_to_its_end():
    assert said(lookup(9, 1, 2, 7, *[1, 2, 3] * 30, 9, 1, 2), 1) == (2, [3])


def test_a_repetition_goes_on():
    assert said(lookup(5, 1, 2, 1, 2), 5) == (2, [1, 2, 1, 2, 1])


def test_a_match_never_reaches_over_a_control_token():
    assert said(lookup(1, CONTROL, 2, 3, 1, CONTROL, 2)) is None
    assert said(lookup(CONTROL, 1, 2, 6, CONTROL, 1, 2), 1) == (2, [6])


def test_few_tokens_have_no_match():
    assert said(lookup()) is None
    assert said(lookup(1)) is None
    assert said(lookup(1, 1)) is None


@given(st.lists(st.integers(0, 3), max_size=60), st.integers(0, 60))
def test_an_index_that_grew_finds_what_a_new_one_finds(tokens, cut):
    grown = lookup(*tokens[:cut])
    for token in tokens[cut:]:
        grown.add(token)
    assert grown.find() == lookup(*tokens).find()


@given(st.lists(st.sampled_from([0, 1, 2, CONTROL]), max_size=60), st.integers(1, 20))
def test_a_match_is_the_same_tokens_and_what_follows_them(tokens, n):
    found = lookup(*tokens)
    match = found.find()
    if match is None:
        return
    same = tokens[match.at + 1 - match.n_tokens : match.at + 1]
    assert same == tokens[len(tokens) - match.n_tokens :]
    assert CONTROL not in same
    followed = found.after(match, n)
    assert len(followed) == n
    real = tokens[match.at + 1 :][:n]
    assert followed[: len(real)] == real
