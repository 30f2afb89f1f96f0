from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.engines.local.batch.assembly import Assembler


def check(pieces, expected, *, stop=(), stopped=False):
    assembler = Assembler(stop)
    texts = [assembler.feed(piece) for piece in pieces]
    texts.append(assembler.finish())
    assert texts == expected
    assert assembler.stopped is stopped


def test_a_character_in_three_tokens_comes_out_once_and_whole():
    check([b"\xf0\x9f", b"\x98", b"\x80", b"!"], ["", "", "😀", "!", ""])


def test_a_character_that_never_becomes_whole_is_dropped():
    check([b"a", b"\xf0\x9f"], ["a", "", ""])


def test_a_stop_string_in_pieces_is_never_seen():
    check([b"x = 1", b"\n", b"\nprint"], ["x = 1", "", "", ""], stop=["\n\n"], stopped=True)


def test_what_only_looked_like_a_stop_string_is_text_after_all():
    check([b"a\n", b"b\n"], ["a", "\nb", "\n"], stop=["\n\n"])


def test_the_earliest_stop_string_wins():
    check([b"abcdef"], ["ab", ""], stop=["ef", "cd"], stopped=True)


def test_nothing_comes_after_a_stop_string():
    check([b"a;", b"b"], ["a", "", ""], stop=[";"], stopped=True)


def test_an_empty_stop_string_stops_nothing():
    check([b"a"], ["a", ""], stop=[""])


@given(
    st.text(st.sampled_from("ab\n é漢😀"), max_size=60),
    st.lists(st.text(st.sampled_from("ab\n😀"), min_size=1, max_size=4), max_size=3),
    st.data(),
)
def test_the_text_is_what_stands_before_the_first_stop_string_however_the_bytes_are_cut(text, stop, data):
    raw = text.encode()
    cuts = sorted(data.draw(st.sets(st.integers(0, len(raw)))))
    assembler = Assembler(stop)
    edges = [0, *cuts, len(raw)]
    said = "".join(assembler.feed(raw[start:end]) for start, end in itertools.pairwise(edges)) + assembler.finish()
    cuts_at = [text.find(one) for one in stop if one in text]
    assert assembler.stopped is bool(cuts_at)
    # Of two that overlap, the one that is whole first ends the answer.
    assert said in ([text[:at] for at in cuts_at] or [text])
    assert not any(one in said for one in stop)
