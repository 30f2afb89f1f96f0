from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.engines.local.batch.track import Track
from tests.unit.engines.local.words import Words


@pytest.fixture
def words():
    return Words()


def track(words, text, *said):
    followed = Track(text, words.tokenize, words.piece)
    for piece in said:
        followed.said(words.token(piece if isinstance(piece, bytes) else piece.encode()))
    return followed


def ahead(words, followed, n=50):
    return b"".join(map(words.piece, followed.expected(n))).decode()


def test_the_rest_of_the_text_is_expected(words):
    followed = track(words, "return a + b", "return", " a")
    assert (followed.agreed, ahead(words, followed)) == (2, " + b")
    assert ahead(words, followed, 1) == " "
    assert followed.expected(0) == []


def test_the_end_of_the_text_expects_nothing_more(words):
    followed = track(words, "a b", "a", " b")
    assert followed.expected(5) == []
    followed.said(words.token(b" c"))
    assert (followed.agreed, followed.expected(5)) == (0, [])


def test_other_cuts_of_the_same_text_stay_on_the_track(words):
    followed = track(words, "return value", "ret")
    assert ahead(words, followed) == "urn value"
    followed.said(words.token(b"urn va"))
    assert (followed.agreed, ahead(words, followed)) == (2, "lue")


def test_as_long_as_the_cuts_are_the_same_the_text_is_cut_once(words):
    followed = track(words, "a b c d")
    for token in followed.expected(9):
        assert followed.expected(1) == [token]
        followed.said(token)
    assert words.n_tokenized == 1


def test_a_character_over_several_tokens_is_waited_for(words):
    face = "😀".encode()
    followed = track(words, "x = '😀!'", "x", " ", "=", " ", "'", face[:2])
    assert followed.expected(5) == []
    followed.said(words.token(face[2:3]))
    assert followed.expected(5) == []
    followed.said(words.token(face[3:]))
    assert (followed.agreed, ahead(words, followed)) == (8, "!'")


def test_another_token_leaves_the_track(words):
    followed = track(words, "return a + b", "return", " c")
    assert (followed.agreed, followed.expected(5)) == (0, [])


def test_what_was_left_out_is_skipped(words):
    text = "first(one)\nsecond(two)\nthird(three)\nfourth(four)"
    followed = track(words, text, "first", "(", "one", ")", "\n", "third")
    assert followed.expected(5) == []
    followed.said(words.token(b"("))
    assert (followed.agreed, ahead(words, followed)) == (0, "three)\nfourth(four)")


def test_what_was_put_in_is_passed(words):
    followed = track(words, "first(one)\nsecond(two)", "first", "(", "one", ",", " 2", ")", "\n", "second")
    assert ahead(words, followed) == "(two)"


def test_a_text_that_starts_elsewhere_is_found(words):
    followed = track(words, "if ready:\n    start(engine)", "start", "(", "engine")
    assert ahead(words, followed) == ")"


def test_white_space_and_brackets_are_no_clue(words):
    assert track(words, "a(b)\n    \n    c", "x", ")", "\n    ", "\n    ").expected(3) == []


def test_the_track_is_not_found_before_the_place_where_it_was_left(words):
    followed = track(words, "alpha beta gamma delta", "alpha", " beta", " gamma", " x", "alpha", " beta", " gamma")
    assert followed.expected(3) == []


def test_a_token_without_bytes_changes_nothing(words):
    followed = track(words, "a b", "a")
    followed.said(0)
    assert (followed.agreed, ahead(words, followed)) == (1, " b")


def test_no_text_expects_nothing(words):
    assert track(words, "", "a", "b", "c").expected(5) == []


@given(st.text(max_size=30), st.lists(st.integers(1, 5), max_size=30))
def test_however_a_text_is_cut_its_rest_is_expected(text, cuts):
    words = Words()
    rest = text.encode()
    followed = Track(text, words.tokenize, words.piece)
    for n, size in enumerate(cuts):
        if not rest:
            break
        followed.said(words.token(rest[:size]))
        rest = rest[size:]
        assert followed.agreed == n + 1
        expected = b"".join(map(words.piece, followed.expected(1000)))
        assert expected in (rest, b"")
        assert expected == rest or 0x80 <= rest[0] < 0xC0


@given(st.text("ab (", max_size=20), st.lists(st.binary(max_size=3), max_size=20))
def test_whatever_is_said_what_is_expected_is_in_the_text(text, said):
    words = Words()
    followed = Track(text, words.tokenize, words.piece)
    for piece in said:
        followed.said(words.token(piece))
        expected = b"".join(map(words.piece, followed.expected(1000)))
        assert text.encode().endswith(expected)
