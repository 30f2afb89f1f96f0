"""Where the text before the cursor is cut for token healing."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.context import healing


@pytest.mark.parametrize(
    ("prefix", "heal"),
    [
        ("for x in y:\n    pri", " pri"),
        ("x = ", " "),
        ("x = foo", " foo"),
        ("x =\tfoo", "\tfoo"),
        ("f(foo", "foo"),
        ("def f():\n    ", "    "),
        ("def f():\n\t\t", "\t\t"),
        ("os.", ""),
        ("f(", ""),
        ("x\n", ""),
        ("", ""),
        ("pri", ""),  # nothing would be left to ask with
        ("    ", ""),
        ("x = 1234", ""),  # digits are tokens of their own
        ("x = 0x1f", ""),
        ("x1", ""),
        (" x1", ""),
        ("a.x1", "x1"),
        ("# größe", " größe"),
        ("// результ", " результ"),
        ("# 这个函数", ""),
        ("# 这个func", "func"),
        ("a " + "b" * 32, " " + "b" * 32),
        ("a " + "b" * 33, ""),
        ("a" + " " * 33, ""),
        ("x = '\ud800", ""),
    ],
)
def test_the_beginning_of_a_word_and_blanks_are_cut_off(prefix, heal):
    kept, cut = healing.split(prefix)
    assert cut == heal
    assert kept + cut == prefix


@given(st.text("ab_1 \t\n(.é漢", max_size=80))
def test_both_parts_are_the_whole_and_something_is_always_sent(prefix):
    kept, cut = healing.split(prefix)
    assert kept + cut == prefix
    assert kept or not cut


def test_the_prompt_stays_the_same_while_a_word_is_typed_and_is_continued_after_it():
    typed = "x = compute_total(first_value, other)"
    before = "import os\n"
    sent = [healing.split(before + typed[:n])[0] for n in range(len(typed))]
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(sent))
    assert len(set(sent)) <= 6
