from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.engines.local.batch.healing import Healing, Pieces

VOCABULARY = [b"", b"p", b"pr", b"print", b"printf", b"pri", b"x", b"\xff", b"\xff\xff", b"r", b"in", b"i", b"n", b"t", b"pri", b""]


def fitting(text):
    return sorted(VOCABULARY[token] for token in Pieces(VOCABULARY).fitting(text))


def test_tokens_that_begin_with_the_text_and_tokens_that_it_begins_with_fit():
    assert fitting(b"pri") == [b"p", b"pr", b"pri", b"pri", b"print", b"printf"]
    assert fitting(b"printx") == [b"p", b"pr", b"pri", b"pri", b"print"]
    assert fitting(b"q") == []


def test_the_highest_bytes_have_nothing_above_them():
    assert fitting(b"\xff") == [b"\xff", b"\xff\xff"]
    assert fitting(b"\xff\xff\xff") == [b"\xff", b"\xff\xff"]


def test_nothing_to_begin_with_fits_every_token_that_has_bytes():
    assert len(fitting(b"")) == len(VOCABULARY) - 2


def test_no_token_fits_in_an_empty_vocabulary():
    assert Pieces([]).fitting(b"a") == []
    assert Pieces([b""]).fitting(b"") == []


@given(st.lists(st.binary(max_size=4), max_size=40), st.binary(max_size=5))
def test_what_fits_is_what_a_walk_through_the_vocabulary_finds(pieces, text):
    expected = [n for n, piece in enumerate(pieces) if piece and (piece.startswith(text) or text.startswith(piece))]
    assert sorted(Pieces(pieces).fitting(text)) == expected


def test_a_token_that_goes_further_gives_what_is_new():
    healing = Healing(b"pri")
    assert healing.take(b"print") == b"nt"
    assert healing.done
    assert healing.take(b"(x)") == b"(x)"


def test_several_tokens_may_spell_the_beginning():
    healing = Healing(b"pri")
    assert healing.take(b"p") == b""
    assert (healing.left, healing.done) == (b"ri", False)
    assert healing.take(b"ri") == b""
    assert healing.done


def test_without_a_beginning_everything_is_new():
    healing = Healing(b"")
    assert healing.done
    assert healing.take(b"a") == b"a"


def test_a_token_that_does_not_fit_is_an_error():
    with pytest.raises(ValueError, match="does not go on"):
        Healing(b"pri").take(b"pu")


@given(st.text(min_size=1, max_size=6), st.data())
def test_any_fitting_tokens_spell_the_beginning_and_lose_nothing(text, data):
    beginning = text.encode("utf-8")
    pieces = [bytes([byte]) for byte in range(256)] + [beginning[:2], beginning[:3], beginning + b"!", beginning[1:] + b"?"]
    vocabulary = Pieces(pieces)
    healing = Healing(beginning)
    said = new = b""
    while not healing.done:
        piece = pieces[data.draw(st.sampled_from(vocabulary.fitting(healing.left)))]
        said += piece
        new += healing.take(piece)
    assert said == beginning + new


def test_a_text_longer_than_any_token_costs_no_more_than_one():
    assert Pieces([b"a", b"ab", b"b"]).fitting(b"ab" * 500_000) == [0, 1]
