"""Each filter alone."""

from __future__ import annotations

import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp import filters, stops
from monkeycode_lsp.domain import Window
from monkeycode_lsp.filters import (
    bodies,
    brackets,
    characters,
    echo,
    fences,
    following,
    indentation,
    lines,
    markers,
    overlap,
    repetition,
    whitespace,
)


def place(document: str, language: str = "python") -> Window:
    prefix, _, suffix = document.partition("‸")
    return Window(prefix=prefix, suffix=suffix, language=language, path="here")


def check(apply: filters.Filter, document: str, text: str, expected: str, *, language: str = "python") -> None:
    assert apply(text, place(document, language)) == expected


@pytest.mark.parametrize(("text", "expected"), [("a\r\nb\rc", "a\nb\nc"), ("a\n", "a\n")])
def test_line_ends(text: str, expected: str) -> None:
    check(characters.with_lf_only, "‸", text, expected)


@pytest.mark.parametrize(("text", "expected"), [("a\0b", "ab"), ("\ta\n", "\ta\n"), ("\x1b[1m", "[1m"), ("é😀\u2028", "é😀\u2028")])
def test_control_characters(text: str, expected: str) -> None:
    check(characters.without_controls, "‸", text, expected)


def test_broken_bytes_end_an_answer_unless_the_user_writes_them() -> None:
    check(characters.without_broken_end, "‸", "ok\ufffd x", "ok")
    check(characters.without_broken_end, "BAD = '\ufffd'\n‸", "x = '\ufffd'", "x = '\ufffd'")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a<|fim_pad|>b", "a"),
        ("a<|file_sep|>b.py\nx", "a"),
        ("a<\uff5cfim\u2581end\uff5c>", "a"),
        ("a<[fim-middle]>", "a"),
        ("a<[end\u2581of\u2581sentence]>", "a"),
        ("a<fim-suffix>b", "a"),
        ("a<file_sep>b", "a"),
        ("a</s>", "a"),
        ("a <EOT>", "a "),
        ("a [SUFFIX] b", "a "),
        ("a<|endof", "a"),
        ("a<|im_start|", "a"),
        ("x[SUFFIX]", "x[SUFFIX]"),
        ("a <| b |> c", "a <| b |> c"),
        ("<s>old</s> new", "<s>old</s> new"),
        ("<pre>a</pre>", "<pre>a</pre>"),
        ("a || b", "a || b"),
    ],
)
def test_markers(text: str, expected: str) -> None:
    check(markers.without_markers, "‸", text, expected)


def test_thoughts() -> None:
    check(markers.without_thoughts, "‸", "<think>a\nb</think>\n\nx", "x")
    check(markers.without_thoughts, "‸", "<think>a\nb", "")
    check(markers.without_thoughts, "‸", "x = '<think>'", "x = '<think>'")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```python\na\n```", "a"),
        ("```\na\n```\nand so on", "a"),
        ("```python\na", "a"),
        ("Sure, here it is:\n```\na\n```", "a"),
        ("The code is as follows.\n\n```js\na\n```\n", "a"),
        ("a\n```", "a"),
        ("```\n```", ""),
        ("a = `b`", "a = `b`"),
        ("Plain text without code.", "Plain text without code."),
    ],
)
def test_fences(text: str, expected: str) -> None:
    check(fences.without_fence, "‸", text, expected)


def test_fences_stay_where_they_are_the_text() -> None:
    check(fences.without_fence, "‸", "```sh\nls\n```", "```sh\nls\n```", language="markdown")
    check(fences.without_fence, "/// ```\n/// ‸", "f();\n/// ```", "f();\n/// ```", language="rust")


@pytest.mark.parametrize(
    ("document", "text", "expected"),
    [
        ("total = ‸", "total = 1", "1"),
        ("    return ‸", "return a", "a"),
        ("    return ‸", "    return a", "a"),
        ("f(‸", "f(x))", "f(x))"),
        ("1, 0, ‸", "1, 0, 1", "1, 0, 1"),
        ("x‸", "x + 1", "x + 1"),
        ("‸", "x", "x"),
    ],
)
def test_echo_of_the_line(document: str, text: str, expected: str) -> None:
    check(echo.without_line, document, text, expected)


def test_echo_of_the_line_above() -> None:
    check(echo.without_line_above, "def f():\n    ‸", "def f():\n    return 1", "    return 1")
    check(echo.without_line_above, "x = 1\n‸", "x = 1\ny = 2", "x = 1\ny = 2")


@pytest.mark.parametrize(
    ("document", "text", "expected"),
    [
        ("foo(‸, b)", "a, b)", "a"),
        ("foo(‸, b)", "a, ", "a"),
        ("if x‸:", " == 1:", " == 1"),
        ("a = b‸ + c", " * 2 + c\nd", " * 2"),
        ("ret‸urn total", "urn total + 1", ""),
        ("<p>‸</p>", "a<br/></p>", "a<br/>"),
        ("pat‸n", "tern", "tern"),
        ("/****‸******", "****", "****"),
        ("a‸", "b", "b"),
    ],
)
def test_the_rest_of_the_line(document: str, text: str, expected: str) -> None:
    check(overlap.without_rest_of_line, document, text, expected)


@pytest.mark.parametrize(
    ("document", "text", "expected"),
    [
        ("‸\nfoo(bar)\n", "a = 1\nfoo(bar)\nb = 2", "a = 1"),
        ("‸\n\n\nfoo(bar)\n", "a = 1\n\nfoo(bar)", "a = 1\n"),
        ("    ‸\nfoo(bar)\n", "foo(bar)", "foo(bar)"),
        ("‸\nfoo(bar)\nbaz(1)\n", "foo(bar)\nqux(2)", "foo(bar)\nqux(2)"),
        ("‸\n    return None\n", "if a:\n    return None\nb()", "if a:\n    return None\nb()"),
        ("‸\n", "a\n", "a\n"),
    ],
)
def test_the_lines_that_follow(document: str, text: str, expected: str) -> None:
    check(following.without_following_lines, document, text, expected)


@pytest.mark.parametrize(
    ("document", "text", "expected"),
    [
        ("if a and ‸len(b):", "c in b:", ""),
        ("if os.‸.exists(a):", "exists(a):", ""),
        ("if (‸sions.length) {", "(!dry) {", ""),
        ("x = a[‸]:", "1:", "1:"),
        ("for (let i = 0; ‸ i++) {", "i < n;", "i < n;"),
        ("if a‸", " == b:", " == b:"),
        ("if a and ‸len(b):", "c in b:\n        pass\n    elif", "c in b:\n        pass\n    elif"),
    ],
)
def test_a_line_that_would_end_twice(document: str, text: str, expected: str) -> None:
    check(overlap.unless_ended_twice, document, text, expected)


def test_a_closing_line_that_is_there() -> None:
    check(following.without_closing_line, "def f\n  ‸\nend\n", "1\nend", "1", language="ruby")
    check(following.without_closing_line, "if a\n  if b\n    ‸\nend\n", "1\n  end", "1\n  end", language="ruby")


@pytest.mark.parametrize(
    ("document", "text", "expected"),
    [
        ("print(‸)", "x)", "x"),
        ("print(‸", "x)", "x)"),
        ("print(‸)", "f(x)", "f(x)"),
        ("print('‸')", ":)", ":)"),
        ("a(b(‸))", "c), d(e", "c), d(e"),
        ("if a:\n    x = [\n        ‸\n    ]\n", "1,\n    ]", "1,\n    "),
        ("x = {‸}", '"a": f(b)}', '"a": f(b)'),
        ('def f():\n    """Do ‸\n    more.\n    """\n', 'it."""', "it."),
        ('def f():\n    """Do ‸\n    x = 1\n\n\ndef g():\n    """Say."""\n', 'it."""', 'it."""'),
    ],
)
def test_closers(document: str, text: str, expected: str) -> None:
    check(brackets.without_extra_closers, document, text, expected)


@pytest.mark.parametrize(
    ("document", "text", "expected", "language"),
    [
        ("/* The GNU ‸\n   and so on.  */\nint a;\n", "library. */", "library. ", "c"),
        ("/* The GNU ‸\nint a; /* one */\n", "library. */", "library. */", "c"),
        ("int a; ‸\n/* one */\n", "/* two */", "/* two */", "c"),
        ("glob('src/**/*.js', ‸\n/* one */\n", "'a/*/b')", "'a/*/b')", "javascript"),
        ("<!-- The ‸\n-->\n", "end -->", "end ", "html"),
    ],
)
def test_the_end_of_a_comment_that_ends_below(document: str, text: str, expected: str, language: str) -> None:
    check(brackets.without_extra_closers, document, text, expected, language=language)


def test_closers_of_lists_in_prose_and_shell_are_letters() -> None:
    check(brackets.without_extra_closers, "‸\n", "1) first", "1) first", language="markdown")
    check(brackets.without_extra_closers, "case a in\n  ‸\nesac", "a) b ;;", "a) b ;;", language="shellscript")


@pytest.mark.parametrize(
    ("text", "language", "unclosed", "n_extra", "n_quotes"),
    [
        ("f(a[1], {", "python", "({", 0, 0),
        ("')' \"]\" `}`", "javascript", "", 0, 0),
        ("a  # (", "python", "", 0, 0),
        ("a // (", "c", "", 0, 0),
        ("a // (", "python", "(", 0, 0),
        ("/* ( */ )", "c", "", 1, 0),
        ('"""(\n(""" [', "python", "[", 0, 0),
        ('"\\")" (', "c", "(", 0, 0),
        ("don't (", "plaintext", "(", 0, 0),
        ('"open (', "c", "(", 0, 1),
        ("(]", "c", "(", 1, 0),
        ("a -- (", "sql", "", 0, 0),
    ],
)
def test_balance(text: str, language: str, unclosed: str, n_extra: int, n_quotes: int) -> None:
    found = brackets.balance(text, language)
    assert (found.unclosed, len(found.extra), found.n_quotes) == (unclosed, n_extra, n_quotes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\na\na\n", "a"),
        ("a\na\n", "a\na\n"),
        ("a\nb\na\nb\na\nb", "a\nb"),
        ("}\n}\n}", "}\n}\n}"),
        ("x" + "ab" * 100, "xab"),
        ("# " + "-" * 78, "# " + "-" * 78),
        ("0x00, " * 16, "0x00, " * 16),
        ("".join(map(str, range(100))), "".join(map(str, range(100)))),
        ("go\n" + "spam " * 40, "go\nspam "),
    ],
)
def test_repetition(text: str, expected: str) -> None:
    check(repetition.without_repeats, "‸", text, expected)


@pytest.mark.parametrize(
    ("document", "expected"),
    [("if a:\n  b\n  if c:\n    d\n‸", 2), ("if a:\n   b\n‸", 3), ("a\n‸", 4), ("if a:\n        b\n‸", 8), ("\ta\n‸", 4)],
)
def test_the_step_of_a_document(document: str, expected: int) -> None:
    assert indentation.unit(place(document)) == expected


@pytest.mark.parametrize(
    ("document", "text", "expected"),
    [
        ("def f():\n    a\n    ‸", "    b\n    c", "b\n    c"),
        ("def f():\n    ‸", "\n    b", "b"),
        ("def f():\n‸", "    b", "    b"),
        ("‸", "\nb", "\nb"),
        ("x = ‸", "  b", "  b"),
        ("\tif a {\n\t‸", "\tb", "\tb"),
    ],
)
def test_indentation_that_is_given(document: str, text: str, expected: str) -> None:
    check(indentation.without_given_lead, document, text, expected)


@pytest.mark.parametrize(
    ("document", "text", "expected"),
    [
        ("\ta\n\t‸", "b {\n        c\n    }", "b {\n\t\tc\n\t}"),
        ("\ta\n‸", "b {\n  c\n}", "b {\n\tc\n}"),
        ("\ta\n\t‸", "b\n\tc", "b\n\tc"),
        ("\ta\n\t‸", "b\n     c", ""),
        ("  a\n  ‸", "b\n\tc", "b\n  c"),
        ("  a\n  ‸", "b\n\t c", ""),
        ("  a\n  ‸", "b\n     c", "b\n     c"),
        ("a\n‸", "b\n\tc", "b\n\tc"),
        ("\ta\n  b\n‸", "c\n  d\n\te", "c\n  d\n\te"),
        ("\ta = ‸", " b", " b"),
        ("\ta = ‸", " f(\n        b,\n    )", " f(\n\t\tb,\n\t)"),
        ("\ta\n\t‸", "b\n\tc\n        d", "b\n\tc\n\t\td"),
        ("\ta\n‸", "/**\n * b\n */", "/**\n * b\n */"),
    ],
)
def test_tabs_and_spaces(document: str, text: str, expected: str) -> None:
    check(indentation.in_own_kind, document, text, expected, language="c")


@pytest.mark.parametrize(
    ("document", "text", "expected"),
    [
        ("x = ‸", " 1", "1"),
        ("x =‸", " 1", " 1"),
        ("x = ‸", "   1", "1"),
        ("x = ‸", " -1", "-1"),
        ("f(a, ‸", " *args)", "*args)"),
        ("x: ‸", " /* c */ 1", "/* c */ 1"),
        ("x ‸", " # a", " # a"),
        ("    ‸", " a", " a"),
        ("x ‸", "  \n", "  \n"),
    ],
)
def test_a_doubled_blank(document: str, text: str, expected: str) -> None:
    check(whitespace.without_doubled_blank, document, text, expected)


@pytest.mark.parametrize(
    ("document", "text", "expected"),
    [
        ("‸\n", "a \n\n ", "a"),
        ("f(‸b)", "a, ", "a, "),
        ("f(‸ b)", "a, ", "a,"),
        ("    ‸b", "a\n", "a\n    "),
        ("{‸}", "\n  a\n", "\n  a\n"),
        ("‸", " \n ", ""),
    ],
)
def test_the_end(document: str, text: str, expected: str) -> None:
    check(whitespace.without_end, document, text, expected)


@pytest.mark.parametrize(
    ("text", "n", "expected"), [("a\nb\nc", 2, "a\nb"), ("\n\na\nb", 1, "\n\na"), ("a", 3, "a"), ("a\n\nb\nc", 3, "a\n\nb")]
)
def test_how_many_lines(text: str, n: int, expected: str) -> None:
    assert lines.limit(text, n) == expected


ANY = st.text(alphabet="ab (){}[]:;,\n\t\"'`#<|>_.=/*-\r\0\ufffd", max_size=120)


@given(ANY, st.sampled_from(["‸", "x = ‸", "f(‸)", "if a:\n    ‸\n    b\n", "{‸}", "\tx\n\t‸", "'‸'"]))
def test_whatever_the_answer_the_suggestion_is_text(text: str, document: str) -> None:
    window = place(document, "javascript")
    cleaned = filters.clean(text, window, plan=stops.plan(window, "always"))
    assert "\r" not in cleaned
    assert "\0" not in cleaned
    assert "\ufffd" not in cleaned
    assert cleaned == "" or cleaned.strip()


@pytest.mark.parametrize("unit", ["a", " ", "(", "```", "A b c.\n", "x = 1\n", "\n", "<|", "<", "'", '"', "    a\n\n"])
def test_long_answers_are_cheap(unit: str) -> None:
    window = place("def f(x):\n    ‸\n    return x\n" * 20)
    text = unit * (8000 // len(unit))
    plan = stops.plan(window, "always")
    start = time.process_time()
    stops.find(text, window, plan)
    filters.clean(text, window, plan=plan)
    assert time.process_time() - start < 0.5


@pytest.mark.parametrize("piece", [" ", "\t", "\n", " \n", "x + ", "(", '"', "`", "# ", "A word ", "<", "- "])
def test_no_answer_takes_long(piece: str) -> None:
    window = place("def f():\n    ‸\n")
    text = (piece * 4_000)[:4_000]  # a stream is not read beyond
    start = time.perf_counter()
    stops.find(text, window, stops.plan(window, "auto"))
    filters.clean(text + "x", window, plan=stops.plan(window, "auto"))
    assert time.perf_counter() - start < 1.0


PIECES = [
    "f(",
    ")",
    "[1, ",
    "]",
    "{\n",
    "}\n",
    "'a'",
    '"b"',
    "'",
    '"',
    '"""',
    "# it's\n",
    "/* ",
    " */",
    "// x\n",
    "\n",
    "x = 1\n",
    "don't ",
    "\\",
    "`",
]


@pytest.mark.parametrize("language", ["python", "javascript", "lua", "markdown"])
@given(
    st.lists(st.sampled_from(PIECES), max_size=12),
    st.lists(st.sampled_from(PIECES), max_size=4),
    st.lists(st.sampled_from(PIECES), max_size=6),
)
def test_what_is_known_of_the_lines_above_changes_no_count_of_faults(language, before, said, after):
    window = Window("".join(before) + "\n" + "y = (", "".join(after), language, "a")
    text = "".join(said)
    assert brackets.n_faults(text, window) == brackets.balance(window.prefix + text + window.suffix, language).n_faults


@pytest.mark.parametrize(
    ("document", "text", "expected"),
    [
        ("try:\n    ‸", "except OSError:\n    pass", ""),
        ("try:‸", "\nfinally:\n    f()", ""),
        ("if a:\n    b\n‸", "else:\n    c", "else:\n    c"),
        ("x = a if b ‸", "else c", "else c"),
        ("match x:\n    ‸", "case 1:\n        y", "case 1:\n        y"),
        ("if a:\n    ‸", "exception = 1", "exception = 1"),
    ],
)
def test_a_body_that_is_missing(document: str, text: str, expected: str) -> None:
    check(bodies.unless_body_is_missing, document, text, expected)


def test_where_a_block_may_be_empty_its_end_is_an_answer() -> None:
    check(bodies.unless_body_is_missing, "if a then\n  ‸", "else\n  b()", "else\n  b()", language="lua")


@pytest.mark.parametrize(
    ("document", "text", "expected"),
    [
        ("def f():\n    ‸\n    return a\n", "a = 1\nprint(f())", "a = 1"),
        ("def f():\n    ‸\n    return a\n", "a = 1\n\n# Test it:\nprint(f())", "a = 1"),
        ("def f():\n    ‸\n    return a\n", "a = 1\nif x:\n    y()", "a = 1"),
        ("def f():\n    ‸\n    return a\n", "return 1\n\ndef g():\n    a = 2", "return 1\n\ndef g():\n    a = 2"),
        ("def f():\n    ‸\n    x = a\n", "return 1\n\nif b:\n    a = 2", "return 1\n\nif b:\n    a = 2"),
        ("def f():\n    ‸\n\n    return a\n", "a = 1\nprint(f())", "a = 1\nprint(f())"),
        ('X = """\n    ‸\n    b\n"""\n', "a\nc", "a\nc"),
        ("def f():\n    ‸\n    return a\n", "a = g(\n1,\n2)", "a = g(\n1,\n2)"),
    ],
)
def test_lines_that_have_left_what_goes_on_below(document: str, text: str, expected: str) -> None:
    check(bodies.without_lost_lines, document, text, expected)


@pytest.mark.parametrize(
    ("document", "text", "expected", "language"),
    [
        ("Counts the ‸", "the lines", "lines", "markdown"),
        ("# Counts the ‸", "the lines", "lines", "python"),
        ("# Counts the ‸", "theory", "theory", "python"),
        ("unsigned long ‸", "long x;", "long x;", "c"),
        ("a b‸", "b c", "b c", "plaintext"),
    ],
)
def test_a_doubled_word(document: str, text: str, expected: str, language: str) -> None:
    check(echo.without_doubled_word, document, text, expected, language=language)


@pytest.mark.parametrize(
    ("above", "text", "expected"),
    [
        ("if a == b:", "if a == b:", ""),
        ("if a == b:", "if a == c:", "if a == c:"),
        ("try:", "try:", "try:"),
        ("x = f(1)", "x = f(1)", "x = f(1)"),
    ],
)
def test_the_opener_above_alone(above: str, text: str, expected: str) -> None:
    check(echo.without_line_above, f"{above}\n    ‸", text, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1" + "0" * 40, ""),
        ("a = 1\nb = " + "12" * 20, "a = 1"),
        ("0." + "3" * 40, ""),
        ("10" * 9, "10" * 9),
        ("0x" + "0" * 32, "0x" + "0" * 32),
        ('"' + "0" * 40 + '"', '"' + "0" * 40 + '"'),
        ("3.14159265358979323846264338327950288", "3.14159265358979323846264338327950288"),
    ],
)
def test_a_number_without_end(text: str, expected: str) -> None:
    check(repetition.without_repeats, "‸", text, expected)


@pytest.mark.parametrize(
    ("suffix", "text", "expected"),
    [
        ("\n}\n", "return c, nil }", "return c, nil"),
        ("\n\treturn d\n}\n", "return c, nil }", "return c, nil"),
        ("\n\tx()\n}\n", "if a { return }", "if a { return }"),
        ("\nvar x = 1\n", "return c }", "return c }"),
    ],
)
def test_a_brace_behind_a_statement_where_braces_cannot_be_counted(suffix: str, text: str, expected: str) -> None:
    window = Window("\t\ta()\n\t}\n\t", suffix, "go", "a", whole_prefix=False, whole_suffix=False)
    assert brackets.without_extra_closers(text, window) == expected


def test_what_was_opened_above_the_window_may_be_closed() -> None:
    window = Window("    1,\n    2,\n", "\n\nx = 1\n", "python", "a", whole_prefix=False)
    assert brackets.without_extra_closers(")", window) == ")"
    assert brackets.without_extra_closers(")", msgspec.structs.replace(window, whole_prefix=True)) == ""


def test_the_grammar_knows_better_than_who_counts() -> None:
    document = "function f() {\n  b(/[(]/);\n‸\n"
    check(brackets.without_extra_closers, document, "}", "}", language="javascript")


@pytest.mark.parametrize(
    ("document", "text", "expected"),
    [
        ("#if A\n# if B\n‸\n#endif\n", "# endif", "# endif"),
        ("    if a:\n        ‸\n    return False\n", "return False", "return False"),
        ("    ‸\n    total = a + b\n", "total = a+b", ""),
        ("f(a, b)\n‸\nf(a, b)\n", "f(a,b)", "f(a,b)"),
    ],
)
def test_what_is_said_below(document: str, text: str, expected: str) -> None:
    check(following.unless_said_below, document, text, expected)


@pytest.mark.parametrize("language", ["python", "javascript", "lua", "markdown"])
@given(text=st.lists(st.sampled_from(PIECES), max_size=20))
def test_what_is_open_at_each_line_is_what_is_open_if_the_text_ends_there(language, text):
    said = (
        "".join(text)
        .replace('"""', "")
        .replace("/*", "")
        .replace("\\", "")
        .replace("{", "")
        .replace("}", "")
        .replace("]", ")")
        .replace("[", "(")
    )
    ends = [at for at, char in enumerate(said) if char == "\n"]
    found = brackets.open_at_line_ends(said, language)
    assert len(found) == len(ends)
    assert found == [brackets.is_open(said[:at], language) for at in ends]


def test_a_fence_in_a_doc_comment_is_the_users_markdown() -> None:
    document = "/**\n * Use it so:\n *\n * ‸\n */\nfunction f() {}\n"
    check(fences.without_fence, document, "```\n * f()\n * ```", "```\n * f()\n * ```", language="javascript")


@pytest.mark.parametrize("document", ["STOP = '<|endoftext|>'\nparts = [‸]\n", "parts = [‸]\nSTOP = '<|endoftext|>'\n"])
def test_a_marker_that_the_file_talks_about_is_no_leak(document: str) -> None:
    check(markers.without_markers, document, "'<|endoftext|>', 'b'", "'<|endoftext|>', 'b'")
    check(markers.without_markers, document, "'a'<|fim_pad|>", "'a'")
