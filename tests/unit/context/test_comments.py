"""Does the cursor stand in a comment, in a string or in code?"""

from __future__ import annotations

import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.context import comments
from monkeycode_lsp.domain import Window


def place(document: str, language: str) -> Window:
    prefix, _, suffix = document.partition("‸")
    return Window(prefix=prefix, suffix=suffix, language=language, path="here")


PLACES = [
    ("python", "x = 1  # todo ‸", "comment"),
    ("python", "x = 1  # todo\n‸", "code"),
    ("python", "x = '# no' + ‸", "code"),
    ("python", "x = '# no‸'", "string"),
    ("python", "x = 'a' # it's ‸", "comment"),
    ("javascript", "// it's ‸\nf();\n", "comment"),
    ("javascript", "f(`a ‸ b`);\n", "string"),
    ("c", "/* a ‸ */", "comment"),
    ("c", "/* a */ ‸", "code"),
    ("c", "/* a ‸", "comment"),
    ("c", "int a; /* b */ int ‸c;\n", "code"),
    ("rust", "/// a ‸\nfn f() {}\n", "comment"),
    ("go", "/*\na ‸\n*/\npackage a\n", "comment"),
    ("java", 'class A { String s = "/* ‸"; }', "string"),
    ("sql", "-- todo ‸", "comment"),
    ("html", "<!-- a ‸ -->", "comment"),
    ("html", "<p>don't ‸</p>", "code"),
    ("markdown", "It's ‸", "code"),
    ("cobol", 'x = "a ‸', "string"),
]


@pytest.mark.parametrize(("language", "document", "expected"), PLACES)
def test_what_the_cursor_stands_in(language: str, document: str, expected: str) -> None:
    assert comments.inside(place(document, language)) == expected


@pytest.mark.parametrize(("language", "document", "expected"), PLACES)
def test_the_text_alone_says_the_same_of_comments(language: str, document: str, expected: str) -> None:
    window = msgspec.structs.replace(place(document, language), whole_prefix=False)
    assert (comments.inside(window) == "comment") == (expected == "comment")


@pytest.mark.parametrize(
    ("language", "document", "expected"),
    [
        ("python", 'def f():\n    """Do.\n\n    # not a comment ‸\n    """\n', "string"),
        ("python", 'x = f"{a + ‸}"\n', "code"),
        ("javascript", "f(`a ${b.‸} c`);\n", "code"),
        ("javascript", "x = `\n// not a comment ‸\n`;\n", "string"),
    ],
)
def test_where_there_is_a_grammar_it_knows_more(language: str, document: str, expected: str) -> None:
    assert comments.inside(place(document, language)) == expected


@given(
    st.text(alphabet="ab \n\"'`#/*-<!>{}()\ud800\0é", max_size=60),
    st.text(max_size=20),
    st.sampled_from(["python", "c", "html", "lua", "?"]),
)
def test_any_text_has_an_answer(before: str, after: str, language: str) -> None:
    assert comments.inside(Window(before, after, language, "here")) in {"code", "comment", "string"}


def test_it_takes_no_longer_than_a_parse_of_the_window() -> None:
    window = place('"""Say."""\n' + "x = 'a'  # b\n" * 400 + "y = '‸'\n" * 200, "python")
    start = time.thread_time()
    comments.inside(window)
    assert time.thread_time() - start < 0.1
