"""A suggestion that was made at another indentation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.recall.indent import reindented


@pytest.mark.parametrize(
    ("text", "made", "now", "expected"),
    [
        # one line never changes
        ("x", "    ", "\t", "x"),
        (" x", "\t \t", "  ", " x"),
        ("\tx", "", "    ", "\tx"),
        ("x\n\n", "    ", "\t", "x\n\n"),
        # the same indentation: whatever it holds
        ("a\n \t b", " \t", " \t", "a\n \t b"),
        # deeper and further out, in the same unit
        ("a\n    b\n        c", "    ", "        ", "a\n        b\n            c"),
        ("a\n        b\n    c", "    ", "", "a\n    b\nc"),
        ("a\n\t\tb\n\tc", "\t", "\t\t\t", "a\n\t\t\t\tb\n\t\t\tc"),
        ("a {\n    b\n}", "", "    ", "a {\n        b\n    }"),
        # aligned lines move with the line that they hang from
        ("foo(1,\n       2)", "   ", "      ", "foo(1,\n          2)"),
        ("foo(1,\n       2)", "   ", "   ", "foo(1,\n       2)"),
        # back out of the block
        ("a\nelse:\n    b", "    ", "        ", "a\n    else:\n        b"),
        ("a\n    }\n}", "        ", "\t\t", "a\n\t}\n}"),
        ("a\n}", "    ", "", None),
        # blanks to tabs
        ("a\n        b", "    ", "\t", "a\n\t\tb"),
        ("a\n    b", "  ", "\t", "a\n\t\tb"),
        ("a\n            b", "        ", "\t\t", "a\n\t\t\tb"),
        ("a\n            b", "        ", "\t", "a\n\t\tb"),
        ("a\n    b\n        c", "", "\t", "a\n\t\tb\n\t\t\tc"),
        ("a\n      b", "    ", "\t", "a\n\t\tb"),
        ("a\n       b", "    ", "\t", None),
        ("a\n         b", "    ", "\t", None),
        # tabs to blanks
        ("a\n\t\tb", "\t", "    ", "a\n        b"),
        ("a\n\t\tb", "\t", "  ", "a\n    b"),
        ("a\n\t\t\tb\n\tc", "\t\t", "        ", "a\n            b\n    c"),
        ("a\n\t\tb", "\t\t", "   ", "a\n   b"),
        ("a\n\t\t\tb", "\t\t", "   ", None),
        ("a\n\tb", "", "    ", None),
        # four blanks to two, or a continued line that moves one level out: nobody can tell
        ("a\n        b", "    ", "  ", None),
        ("a\n            b\n    c", "        ", "    ", "a\n        b\nc"),
        ("a\n    b", "  ", "    ", "a\n      b"),
        # mixed
        ("a\n\t    b", "\t", "    ", None),
        ("a\n    b", "\t", "\t\t", None),
        ("a\n\t\tb", "\t", " \t", None),
        ("a\n\t    b", "\t    ", "    ", "a\n    b"),
        # the first line's own white space may be indentation
        ("    a\n    b", "", "    ", "    a\n        b"),
        ("\ta\n\tb", "", "    ", None),
        ("    a\n        b", "    ", "\t", None),
        (" a\n        b", "    ", "\t", " a\n\t\tb"),
        # lines of white space only become empty
        ("a\n    \n        b", "    ", "", "a\n\n    b"),
    ],
)
def test_the_lines_below_move_with_the_cursors_line(text: str, made: str, now: str, expected: str | None) -> None:
    assert reindented(text, made, now) == expected


LINE = st.tuples(st.integers(0, 4), st.sampled_from(["a", "b(c)", "}", "x = 1"]))


@given(st.lists(LINE, min_size=1, max_size=6), st.integers(1, 3), st.integers(0, 5), st.sampled_from(["\t", "    ", "  "]))
def test_a_move_in_the_same_unit_and_back_is_the_text_again(lines: list[tuple[int, str]], made: int, now: int, unit: str) -> None:
    text = "\n".join(["a", *(unit * depth + line for depth, line in lines)])
    there = reindented(text, unit * made, unit * now)
    if there is None:
        assert unit != "\t" or min(depth for depth, _ in lines) < made - now
        return
    assert there == "\n".join(["a", *(unit * (depth - made + now) + line for depth, line in lines)])
    assert reindented(there, unit * now, unit * made) in ({text} if unit == "\t" else {text, None})


@given(st.text(alphabet="a \t\n", max_size=30), st.text(alphabet=" \t", max_size=6), st.text(alphabet=" \t", max_size=6))
def test_only_white_space_at_the_beginning_of_lines_changes(text: str, made: str, now: str) -> None:
    moved = reindented(text, made, now)
    if moved is not None:
        assert [line.lstrip(" \t").rstrip(" \t") for line in moved.split("\n")] == [line.strip(" \t") for line in text.split("\n")]
        assert moved.split("\n")[0] == text.split("\n", maxsplit=1)[0]
