"""The syntax guarantee: no suggestion brings a parse error into the document."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp import config
from monkeycode_lsp.config import Context
from monkeycode_lsp.context import surroundings
from monkeycode_lsp.context.surroundings import Surroundings
from monkeycode_lsp.context.window import around
from monkeycode_lsp.domain import Snapshot
from monkeycode_lsp.filters import syntax
from monkeycode_lsp.syntax import faults
from tests.unit.places import at, snapshot


@pytest.mark.parametrize(
    ("language", "document", "answer", "left"),
    [
        ("python", "x = f(‸)\n", "a, b", "a, b"),
        ("python", "x = ‸\n", "f(a))", "f(a)"),
        ("python", "def f():\n    ‸\n", "return 1\n    return 2)", "return 1"),
        ("python", "def f():\n    ‸\n", "a = 1\n    b = 2\n    c = )", "a = 1\n    b = 2"),
        ("python", "‸\n", ") = 1", ""),
        ("javascript", "function f() {\n  ‸\n}\n", "g();\n}\n}", "g();"),
        ("go", "package m\n\nfunc f() {\n\t‸\n}\n", "x := g()\n}}", "x := g()"),
        ("java", "class A {\n  void f() {\n    ‸\n  }\n}\n", "int x = 1;\n    int y = ;", "int x = 1;"),
    ],
)
def test_what_breaks_the_document_is_cut_to_the_longest_piece_that_does_not(language, document, answer, left):
    window = at(document, language=language)
    assert syntax.without_faults(answer, window).rstrip() == left


def test_an_opener_without_its_body_is_no_fault_and_text_that_was_broken_before_may_stay_so():
    assert syntax.without_faults("for x in xs:", at("def f(xs):\n    ‸\n")) == "for x in xs:"
    assert syntax.without_faults("a, b", at("x = f(‸\n")) == "a, b"
    assert syntax.without_faults("1", at("class (:\n\nx = ‸\n")) == "1"


def test_of_which_less_than_half_would_be_left_nothing_is():
    assert syntax.without_faults("a[0m = 1", at("‸\n")) == ""


@pytest.mark.parametrize("language", ["plaintext", "cobol", "markdown"])
def test_without_a_grammar_nothing_is_promised(language):
    assert syntax.without_faults("f(a))", at("x = ‸\n", language=language)) == "f(a))"


def test_what_stands_outside_the_window_counts():
    window = at("    ‸\n    b = 2\n")
    inside = Surroundings(before='x = """\n', after='"""\n')
    assert syntax.without_faults("f(a))", window, inside) == "f(a))"
    assert syntax.without_faults("f(a))", window) == "f(a)"


@given(st.text(alphabet="ab =()[]{}:\n\"'#\ud800\x00é", max_size=60), st.text(alphabet="ab =()[]{}:\n\"'", max_size=40))
def test_no_text_brings_more_faults_than_there_were(answer, document):
    half = len(document) // 2
    window = at(document[:half] + "‸" + document[half:])
    kept = syntax.without_faults(answer, window)
    assert answer.startswith(kept)
    if not any(place.is_sound for place in syntax._places(window, Surroundings())):
        assert kept == answer
        return
    before = faults.count(window.prefix + window.suffix, "python")
    assert faults.count(window.prefix + kept + window.suffix, "python") <= before


def test_surroundings_begin_at_the_left_margin_and_end_within_their_limits():
    lines = [
        line + "\n"
        for line in ("import a", "", "def f():", *[f"    x = {n}" for n in range(400)], "def g():", *[f"    y = {n}" for n in range(2000)])
    ]
    snapshot = Snapshot("file:///w/a.py", "python", 1, lines, 390, 4)
    window = around(snapshot, Context(prefix_tokens=64, suffix_tokens=32))
    found = surroundings.of(snapshot, window)
    text = found.before + window.prefix + window.suffix + found.after
    assert "".join(lines).startswith(text)
    assert found.before.startswith("import a")
    assert len(found.after) <= surroundings.MOST_AFTER + 1


def test_a_window_that_holds_the_whole_document_has_no_surroundings():
    snapshot = Snapshot("file:///w/a.py", "python", 1, ["a = 1\n", "b"], 1, 1)
    assert surroundings.of(snapshot, around(snapshot, Context())) == Surroundings()


def test_only_what_stands_near_is_parsed_and_it_says_the_same():
    functions = "".join(f"def f{n}():\n    return {n}\n\n\n" for n in range(200))
    window = at(functions + "def here():\n    x = ‸\n\n\n" + functions, config.Context(prefix_tokens=100_000, suffix_tokens=100_000))
    assert len(syntax._near_end(window.prefix)) < 100
    assert len(syntax._near_start(window.suffix)) < 100
    assert syntax.without_faults("f(a))", window) == "f(a)"
    assert syntax.without_faults("f(a)", window) == "f(a)"


@pytest.mark.parametrize(
    ("marked", "answer"),
    [
        ("if a:\n    b()\n‸\n", "else:\n    c()"),
        ("try:\n    b()\n‸\n", "except ValueError:\n    c()"),
        ("@decorated\n‸\n", "def f():\n    pass"),
        ("x = [\n    1,\n‸\n", "]"),
        ('def f():\n    """Say:\n\nthat stands at the margin.\n    """\n    ‸\n', "return 1"),
    ],
)
def test_what_goes_on_with_the_lines_above_is_no_fault(marked, answer):
    assert syntax.without_faults(answer, at(marked)) == answer


def test_what_is_too_long_to_be_judged_in_time_is_not_shown():
    assert syntax.without_faults("(" * 3_000_000, at("x = ‸\n")) == ""


@pytest.mark.parametrize(
    ("marked", "answer", "left"),
    [
        ("token = ‸\nprint(token)\n", "foo(1) +", "foo(1)"),
        ("token = ‸\nprint(token)\n", "foo(1) + (", "foo(1)"),
        ("x = ‸\ny = 1\n", "alpha and", "alpha"),
        ("x = ‸\ny = 1\n", "a.b.", "a.b"),
        ("import ‸\nx = 1\n", "os,", "os"),
        ("x = ‸\ny = 1\n", "1,", "1,"),
        ("x = [‸\n    b]\n", "a +", "a +"),
        ("x = ‸\ny = 1\n", "a  # and +", "a  # and +"),
        ("x = ‸\ny = 1\n", "command", "command"),
        ("x = ‸ + 1\n", "a +", "a +"),
        ("begin, end = ‸\ny = 1\n", "-1., 1.", "-1., 1."),
        ("x: int = ‸\ny = 1\n", "...", "..."),
        ("def f():\n    if a:\n        b = 1\n    ‸\n        c = 2\n", "return b", ""),
        ("def f():\n    if a:\n        b = 1\n    ‸\n        c = 2\n", "if b:", "if b:"),
        ("def f():\n    ‸\n        # deeper\n    c = 2\n", "return b", "return b"),
        ("x = f(\n    ‸\n        b)\n", "a,", "a,"),
        ("def f():\n    a = 1\n‸\n    return a\n", "        a += 1", ""),
        ("def f():\n    a = 1\n‸\n    return a\n", "    a += 1", "    a += 1"),
        ("def f():\n    if a:\n‸\n    return a\n", "        a += 1", "        a += 1"),
        ("x = f(\n    a,\n‸\n)\n", "        b,", "        b,"),
        ("def f():\n    if a:\n‸\n            c = 1\n    return a\n", "                b = 1", ""),
        ("def f():\n    if a:\n‸\n            c = 1\n    return a\n", "            b = 1", "            b = 1"),
        ("def f():\n    if a:\n        if b:\n‸\n    return a\n", "            b = 1", "            b = 1"),
    ],
)
def test_a_line_of_python_does_not_end_where_it_must_go_on(marked, answer, left):
    assert syntax.without_faults(answer, at(marked)).rstrip() == left


def test_a_bracket_that_stays_open_is_a_fault_also_where_the_document_goes_on_beyond_what_is_parsed():
    methods = "".join(f"    def f{n}(self):\n        return {n}\n\n" for n in range(2_000))
    window = at(f"class A:\n    def f(self):\n        ‸\n\n{methods}")
    around = surroundings.of(snapshot(f"class A:\n    def f(self):\n        ‸\n\n{methods}"), window)
    assert around.cut_after
    assert syntax.without_faults("await run(", window, around) == "await run"
    assert syntax.without_faults("await run()", window, around) == "await run()"
