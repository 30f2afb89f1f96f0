"""The truth of a replay."""

from __future__ import annotations

import pytest

from monkeycode_lsp.bench.replay.author import MOST_CHARACTERS, follow
from monkeycode_lsp.bench.replay.trace import Key, Patch, Trace


def trace(*edits, start=""):
    keys = []
    for index, edit in enumerate(edits):
        patches = edit if isinstance(edit[0], tuple) else (edit,)
        keys.append(Key(index * 0.2, tuple(Patch(*patch) for patch in patches)))
    return Trace("t", "python", start, tuple(keys))


def word(text, at=0):
    return [(at + index, 0, char) for index, char in enumerate(text)]


def thens(*edits, start=""):
    return [typed.then for typed in follow(trace(*edits, start=start))]


def test_what_comes_next_is_what_is_typed_on_at_the_cursor():
    assert thens(*word("abc")) == ["bc", "c", ""]


def test_text_that_comes_in_one_piece_counts_as_well():
    assert thens((0, 0, "a"), (1, 0, "bcd"), (4, 0, "e")) == ["bcde", "e", ""]


@pytest.mark.parametrize(
    "leaves",
    [(2, 1, ""), (0, 0, "x"), (2, 0, ""), ((3, 0, "x"), (0, 0, "y")), (3, 1, "x")],
    ids=["deletes", "jumps", "does nothing", "edits two places", "replaces"],
)
def test_it_ends_where_the_author(leaves):
    assert thens(*word("abc"), leaves, start="....")[:3] == ["bc", "c", ""]


def test_after_a_jump_the_truth_is_that_of_the_new_place():
    assert thens((0, 0, "a"), (9, 0, "x"), (10, 0, "y"), start="." * 20) == ["", "y", ""]


def test_it_ends_with_the_line():
    assert thens(*word("ab\ncd\nef"))[0] == "b"
    assert thens(*word("ab\ncd\nef"))[1] == "\ncd"
    assert thens(*word("ab\n\n\tcd\nef"))[1] == "\n\n\tcd"


def test_it_is_never_long():
    assert {len(then) for then in thens(*word("x" * 200))[:100]} == {MOST_CHARACTERS}


def test_a_deletion_leaves_the_cursor_where_it_deleted():
    typed = follow(trace((1, 1, ""), (1, 0, "Q"), start="abc"))
    assert [(at.prefix, at.suffix, at.then) for at in typed] == [("a", "c", "Q"), ("aQ", "c", "")]


def test_the_text_around_the_cursor_is_that_of_the_moment():
    typed = follow(trace((3, 0, "d"), (0, 0, ">"), start="abc" + "z" * 900))
    assert (typed[0].prefix, typed[0].suffix) == ("abcd", "z" * 200)
    assert (typed[1].prefix, typed[1].suffix[:5]) == (">", "abcdz")
    assert [at.at for at in typed] == [0.0, 0.2]
