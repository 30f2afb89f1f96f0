"""One line's tokens, and what is open at its end."""

from __future__ import annotations

import pytest

from monkeycode_lsp.recall import grammar
from monkeycode_lsp.recall.lexer import COMMENT, STRING, beginning, lex, over_line_end


def read(language: str, text: str) -> list[list[str]]:
    """The tokens of each line."""
    opened, lines = None, []
    for line in text.split("\n"):
        lexed = lex(language, opened, line)
        lines.append(list(lexed.tokens))
        opened = over_line_end(lexed, line)
    return lines


@pytest.mark.parametrize(
    ("language", "text", "tokens"),
    [
        ("python", "x = f('a # b') # c  d", ["wx", "o=", "wf", "o(", "s'a # b'", "o)", "c# c d"]),
        ("python", r"'a\'b' 'c", [r"s'a\'b'", "s'c"]),
        ("python", "1.5e3 + 0x1F", ["w1.5e3", "o+", "w0x1F"]),
        ("javascript", "a = /[/*]\\//g / 2 // b", ["wa", "o=", "s/[/*]\\//g", "o/", "w2", "c// b"]),
        ("javascript", "a / b / c", ["wa", "o/", "wb", "o/", "wc"]),
        ("c", "#define  F(x)  1", ["s#define F(x) 1", "o\n"]),
        ("c", "a+/* b */-c", ["wa", "o+", "c/* b */", "o-", "wc"]),
        ("rust", "'a' 'b: '\\n'", ["s'a'", "s'b", "o:", "s'\\n'"]),
        ("shellscript", "a -b  #c", ["wa", "b", "o-", "wb", "c#c"]),
        ("shellscript", "$#a#b", ["o$#", "wa", "o#", "wb"]),
        ("yaml", "it's: 'a # b' # c", ["wit", "o'", "ws", "o:", "b", "s'a # b'", "c# c"]),
        ("markdown", "# it's  1", ["o#", "b", "wit", "o'", "ws", "b", "w1"]),
        ("zzz", '"a  b" # c', ['s"a  b"', "b", "o#", "b", "wc"]),
        ("perl", "f # a", ["wf", "b", "o#", "b", "wa"]),
        ("perl", "  # a", ["c# a"]),
    ],
)
def test_a_line_is_read(language: str, text: str, tokens: list[str]) -> None:
    assert read(language, text) == [tokens]


@pytest.mark.parametrize(
    ("language", "text", "tokens"),
    [
        ("python", 'a = """b\n # c\n"""; d', [["wa", "o=", 's"""b'], ["s # c"], ['s"""', "o;", "wd"]]),
        ("python", "'a\nb", [["s'a"], ["wb"]]),
        ("python", "'a\\\n b' # c", [["s'a\\"], ["s b'", "c# c"]]),
        ("rust", "/* a /* b\n*/ c */ d", [["c/* a /* b"], ["c*/ c */", "wd"]]),
        ("c", "/* a /* b\n*/ c", [["c/* a /* b"], ["c*/", "wc"]]),
        ("lua", "x = [==[ a ]]\n]==] -- b", [["wx", "o=", "s[==[ a ]]"], ["s]==]", "c-- b"]]),
        ("cpp", 'R"x(a)"\n)x" b', [['sR"x(a)"'], ['s)x"', "wb"]]),
        ("shellscript", "a <<-'E' | b\n # c\nE\nd", [["wa", "b", "o<<-'E'", "b", "o|", "b", "wb"], ["s # c"], ["sE"], ["wd"]]),
        ("yaml", "a: |\n  # b\n\nc: d", [["wa", "o:", "b", "o|"], ["s  # b"], ["s"], ["wc", "o:", "b", "wd"]]),
    ],
)
def test_what_is_open_goes_on_at_the_next_line(language: str, text: str, tokens: list[list[str]]) -> None:
    assert read(language, text) == tokens


@pytest.mark.parametrize(
    ("language", "text", "closer"),
    [
        ("c", " a comment\n */\nint x;", "*/"),
        ("c", "int x; /* a */", None),
        ("c", "int x;", None),
        ("python", 'of it.\n    """\nx = 1', '"""'),
        ("python", 'of it."""\nx = 1', '"""'),
        ("python", 'def f():\n    """It."""\n', None),
        ("python", 'x = """\na"""\n', None),
        ("python", 'return """\na"""\n', None),
        ("python", '"""A module."""\n', None),
        ("plaintext", '*/ """', None),
    ],
)
def test_what_a_cut_out_text_begins_inside_of_is_guessed(language: str, text: str, closer: str | None) -> None:
    opened = beginning(language, text)
    assert (opened.closer if opened else None) == closer
    assert opened is None or opened.kind == STRING != COMMENT


def test_each_language_has_one_grammar_that_can_be_read() -> None:
    languages = [language for languages, _ in grammar._GRAMMARS for language in languages.split()]
    assert len(languages) == len(set(languages))
    for language in languages:
        assert grammar.scanner(language).match("a")
    assert grammar.grammar("Python") == grammar.grammar("python") != grammar.grammar("no such language")
