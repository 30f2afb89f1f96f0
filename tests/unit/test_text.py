"""Positions and edits against a plain model: one string, no lines."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.text import Change, Document, Encoding, column_to_units, prevailing_eol, split_lines, units_to_column

PIECES = [
    "a",
    "b ",
    "\n",
    "\r\n",
    "\r",
    "\x0c",
    "\x0b",
    "\x1c",
    "\x85",
    "\u2028",
    "\u2029",
    "é",
    "e\u0301",
    "漢",
    "😀",
    "👩\u200d👩",
    "\t",
    "\0",
    "\ud800",
]
texts = st.lists(st.sampled_from(PIECES), max_size=24).map("".join)
encodings = st.sampled_from(list(Encoding))


def units(char, encoding):
    if encoding is Encoding.UTF8:
        return len(char.encode("utf-8", "surrogatepass"))
    if encoding is Encoding.UTF16:
        return 2 if ord(char) > 0xFFFF else 1
    return 1


def model_lines(text):
    return re.split(r"(?<=\n)|(?<=\r)(?!\n)", text) if text else [""]


def model_offset(text, line, n_units, encoding):
    """Offset of a position by walking the string character by character."""
    lines = model_lines(text)
    if line >= len(lines):
        return len(text)
    offset = sum(map(len, lines[:line]))
    for char in lines[line].rstrip("\r\n"):
        n_units -= units(char, encoding)
        if n_units < 0:
            break
        offset += 1
    return offset


@given(texts)
def test_lines_break_at_lf_crlf_and_cr_only(text):
    assert split_lines(text) == model_lines(text)


@given(
    texts, st.lists(st.tuples(st.integers(0, 8), st.integers(0, 12), st.integers(0, 8), st.integers(0, 12), texts), max_size=6), encodings
)
def test_edits_agree_with_a_plain_string(text, edits, encoding):
    document = Document("file:///a", "x", 0, text, encoding)
    for line, column, end_line, end_column, new in edits:
        held = document.share()
        before = list(held)
        start, end = sorted([model_offset(text, line, column, encoding), model_offset(text, end_line, end_column, encoding)])
        document.apply(Change(new, (line, column), (end_line, end_column)))
        text = text[:start] + new + text[end:]
        assert document.text == text
        assert document.share() == model_lines(text)
        assert document.n_chars == len(text)
        assert document.n_nuls == text.count("\0")
        assert held == before, "a snapshot must never change"


@given(texts, st.integers(0, 8), st.integers(0, 12), encodings)
def test_positions_are_clamped_and_never_inside_a_character(text, line, column, encoding):
    document = Document("file:///a", "x", 0, text, encoding)
    at_line, at_column = document.locate(line, column)
    lines = document.share()
    assert sum(map(len, lines[:at_line])) + at_column == model_offset(text, line, column, encoding)


@given(texts.map(lambda text: text.replace("\n", "").replace("\r", "")), encodings)
def test_columns_survive_the_round_trip(line, encoding):
    for column in range(len(line) + 1):
        n_units = column_to_units(line, column, encoding)
        assert n_units == sum(units(char, encoding) for char in line[:column])
        assert units_to_column(line, n_units, encoding) == column


def test_the_whole_text_can_be_replaced():
    document = Document("file:///a", "x", 0, "a\nb", Encoding.UTF16)
    document.apply(Change("c\r\nd"))
    assert document.share() == ["c\r\n", "d"]
    assert document.eol == "\r\n"


@pytest.mark.parametrize(("text", "eol"), [("", "\n"), ("a", "\n"), ("a\r\nb\r\nc\n", "\r\n"), ("a\rb\r", "\r"), ("a\nb", "\n")])
def test_the_prevailing_line_end(text, eol):
    assert prevailing_eol(split_lines(text)) == eol


def test_a_position_far_outside_is_the_end():
    document = Document("file:///a", "x", 0, "abc", Encoding.UTF16)
    assert document.locate(4294967295, 0) == document.locate(7, 0) == document.locate(0, 99) == (0, 3)


@pytest.mark.parametrize("encoding", list(Encoding))
def test_columns_of_an_endless_line_are_those_of_its_pieces(encoding):
    line = "a😀字" * 5_000
    for column in (0, 1, 4_095, 4_096, 4_097, 9_999, len(line)):
        units = column_to_units(line, column, encoding)
        assert units_to_column(line + "\n", units, encoding) == column


def test_a_letter_in_an_endless_line_leaves_the_other_lines_alone():
    document = Document("file:///a", "python", 1, "x\r\n" + "a" * 10_000 + "\n\0", Encoding.UTF16)
    document.apply(Change("\0", (1, 5_000), (1, 5_001)))
    assert list(document.lines) == ["x\r\n", "a" * 5_000 + "\0" + "a" * 4_999 + "\n", "\0"]
    assert (document.n_chars, document.n_nuls) == (10_005, 2)
