"""How much is asked for, and where a stream is cut."""

from __future__ import annotations

import itertools
import time
from typing import Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp import stops
from monkeycode_lsp.domain import Window
from monkeycode_lsp.stops import Habit, Plan
from monkeycode_lsp.stops.amount import PATIENCE

SEVERAL = Plan(single=False, max_lines=stops.MOST_LINES)
ONE = Plan(single=True, max_lines=1)
RUN_ON = "".join(f"x{n} = {n}\n" for n in range(6))
"""What a model says that does not know how to end."""
STATEMENT = Plan(single=True, max_lines=stops.MOST_STATEMENT_LINES)


def place(document: str, language: str = "python") -> Window:
    prefix, _, suffix = document.partition("‸")
    return Window(prefix=prefix, suffix=suffix, language=language, path="here")


def kept(answer: str, document: str, *, language: str = "python", plan: Plan | None = None) -> str:
    """What is left of `answer` when it is streamed letter by letter."""
    window = place(document, language)
    plan = plan or stops.plan(window, "auto")
    for end in range(1, len(answer) + 1):
        stop = stops.find(answer[:end], window, plan)
        if stop is not None:
            assert stop.at <= end
            assert stop.reason
            return answer[: stop.at]
    return answer


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("‸\n", SEVERAL),
        ("def f():\n    ‸\n", SEVERAL),
        ("def f():‸\n", SEVERAL),
        ("int f() {‸\n", SEVERAL),
        ("int f() {‸}\n", SEVERAL),
        ("call(‸\n", SEVERAL),
        ("xs.map((x) =>‸\n", SEVERAL),
        ("x = ‸\n", STATEMENT),
        ("return a‸", STATEMENT),
        ("print(‸)\n", ONE),
        ("x = [‸];\n", ONE),
        ('s = "‸",\n', ONE),
        ("x = ‸ + 1\n", ONE),
        ("pri‸nt(x)\n", ONE),
        ("    ‸return a\n", ONE),
    ],
)
def test_how_much_is_asked_for(document: str, expected: Plan) -> None:
    assert stops.plan(place(document), "auto") == expected


@pytest.mark.parametrize(("mode", "expected"), [("always", SEVERAL), ("never", ONE)])
def test_the_setting_decides_where_it_is_not_auto(mode: Literal["always", "never"], expected: Plan) -> None:
    assert stops.plan(place("x = ‸\n"), mode) == expected
    assert stops.plan(place("‸\n"), mode) == expected


@pytest.mark.parametrize(
    ("document", "answer", "expected"),
    [
        # One line.
        ("x = ‸\n", "foo(1)\ny = 2\n", "foo(1)"),
        ("x = ‸\n", "foo(\n    1,\n)\ny = 2\n", "foo(\n    1,\n)"),
        ("x = ‸\n", '"("\ny = 2\n', '"("'),
        ("x = ‸ + 1\n", "foo(\n    1,\n)", "foo("),
        ("x = 1‸\n", "\ny = 2\nz = 3\n", "\ny = 2"),
        ("x = 1‸ + y\n", "\nz", ""),
        ("x = 1‸\n", "\n\n\n\n", ""),
        ("    ‸return a\n", "b = 1\n    return a", "b = 1\n"),
        # A block.
        ("def f():\n    ‸\n", "a = 1\n    return a\n\ndef g():\n    pass\n" + RUN_ON, "a = 1\n    return a"),
        ("def f():\n    ‸\n", "a = 1\n\n    return a\nprint(f())\n" + RUN_ON, "a = 1\n\n    return a"),
        ("def f():\n    ‸\n", "a = 1\n\n\n    return a\n" + RUN_ON, "a = 1"),
        ("def f():\n    ‸\n", "a = 1\n\n\n\n\n", "a = 1"),
        ("def f():‸\n", "\n    return 1\nprint(f())\n", "\n    return 1"),
        ("class A:\n    def f(self):‸\n", "\n        return 1\n\n    def g(self):\n", "\n        return 1"),
        ("if a:‸\n", "\n    b = 1\nelse:\n    b = 2\nprint(b)\n", "\n    b = 1\nelse:\n    b = 2"),
        ("‸\n", "import os\nimport sys\n\ndef main():\n" + RUN_ON, "import os\nimport sys"),
        ("‸\n", "\n\nimport os\n\n" + RUN_ON, "\n\nimport os"),
        ("    for x in xs:\n        ‸\n    return y\n", "y = x\n    z = 1\nprint(y)\n" + RUN_ON, "y = x\n    z = 1"),
        ("    if a:\n        if b:\n            ‸\n        c()\n", "d()\n    if e:\n        f()\n", "d()\n    if e:\n        f()\n"),
        ("    if a:\n        if b:\n            ‸\n        c()\n", "d()\n    e()\n" + RUN_ON, "d()"),
        # The lines that follow.
        ("def f():\n    ‸\n    return a\n", "a = 1\n    return a\n    print(a)\n", "a = 1"),
        ("def f():\n    ‸\n    return total\n", "total = 1\n    return total + 2\n", "total = 1\n    return total + 2\n"),
        ("def f():\n    ‸\n    return total\n", "return total\n", ""),
        # What is no code.
        ("return ‸", "a + b<|fim_middle|>", "a + b"),
        ("return ‸", "a + b<|endoftext|>x", "a + b"),
        ("‸", "x<\uff5cend\u2581of\u2581sentence\uff5c>", "x"),
        ("‸\n", "x = 1\nx = 1\nx = 1\nx = 1\n", "x = 1"),
        ("x = ‸", "ab" * 200, "ab"),
        ("‸\n", "```python\nx = 1\n```\nThat is it.", "```python\nx = 1"),
        ("‸\n", "Here is the code:\n```python\nx = 1\n```", "Here is the code:\n```python\nx = 1"),
        ("x = ‸\n", "```\n1\n```", "```\n1"),
        ("# ‸\n", "Return the sum of all.\nx = 1\n", "Return the sum of all."),
        ("‸\n", "x = 1\n```\nThat is it.", "x = 1"),
        ("x = ‸\n", "<think>\nHm.\n</think>\n1\n2\n", "<think>\nHm.\n</think>\n1"),
        ("x = ‸\n", "<think>\nHm.\nWell", "<think>\nHm.\nWell"),
        # Brackets.
        ("print(‸)\n", '"a)")  # done', '"a)"'),
    ],
)
def test_a_stream_is_cut_where_the_answer_is_complete(document: str, answer: str, expected: str) -> None:
    assert kept(answer, document) == expected


@pytest.mark.parametrize(
    ("document", "answer", "expected"),
    [
        ("int f() {‸", "\n  return 1;\n}\nint g() {\n", "\n  return 1;\n}"),
        ("  if (a) {‸", "\n    b();\n  } else {\n    c();\n  }\n  d();\n", "\n    b();\n  } else {\n    c();\n  }"),
        ("int f() {\n  ‸\n", "return 1;\n}\n\nint g() {\n" + RUN_ON, "return 1;\n}"),
    ],
)
def test_a_block_in_braces_ends_with_its_brace(document: str, answer: str, expected: str) -> None:
    assert kept(answer, document, language="c") == expected


def test_a_block_ends_at_its_longest() -> None:
    answer = "".join(f"    a{n} = {n}\n" for n in range(50))
    assert kept(answer, "def f():\n‸\n").count("\n") == stops.MOST_LINES - 1


def test_never_more_than_one_line_where_the_user_wants_none() -> None:
    assert kept("foo(\n    1)", "x = ‸\n", plan=ONE) == "foo("


def test_an_endless_stream_is_stopped_early() -> None:
    window = place("‸")
    plan = stops.plan(window, "auto")
    text = ""
    n = next(n for n in itertools.count(1) if stops.find(text := text + "x = 1\n", window, plan))
    assert n <= 4


@given(st.text(alphabet="ab (){}[]:\n\"'`#<|>_.=", max_size=200), st.sampled_from(["‸", "x = ‸", "f(‸)", "if a:\n    ‸\n    b\n", "{‸}"]))
def test_whatever_comes_a_cut_lies_inside_the_text(text: str, document: str) -> None:
    window = place(document, "javascript")
    stop = stops.find(text, window, stops.plan(window, "auto"))
    assert stop is None or 0 <= stop.at <= len(text)


def test_an_answer_of_empty_lines_is_cut() -> None:
    assert kept("\n" * 50, "def f():\n    ‸\n") == ""
    assert kept("\n    return 1\n", "def f():\n    ‸\n") == "\n    return 1\n"


@pytest.mark.parametrize(
    ("document", "answer"),
    [
        ("‸\n", "import os\n\nimport re\n"),
        ("‸\n", "a()\n\nb()\nc()\nd()\ne()\nf()\n"),
        ("‸\n", "x = 1\n\n\ndef f():\n    return 1\n"),
        ("def f():\n    if a:\n        ‸\n    return b\n", "b = 1\n\n    c = 2\n"),
        ("def f():\n    if a:\n        ‸\n\n    return b\n", "b = 1\n\n    for c in d:\n        b += c\n"),
        ("def f():\n    return 1\n‸\n        return 2\n", "\n\ndef g():\n    if a:\n"),
        ("def f():\n    ‸\n    return b\n", "a = 1\n\n\n# A note.\ndef g():\n    b = 2\n"),
        ("/*\n * One.\n ‸\n * Three.\n */\nint b;\n", "* Two.\n */\nint a;\n\n/*\n"),
    ],
)
def test_who_ends_by_itself_keeps_what_goes_beyond_a_likely_end(document: str, answer: str) -> None:
    assert kept(answer, document, language="c" if "/*" in answer else "python") == answer


def test_without_patience_a_likely_end_is_the_end() -> None:
    hasty = msgspec.structs.replace(SEVERAL, patience=0)
    assert kept("a = 1\n\ndef g():\n    pass\n", "def f():\n    ‸\n", plan=hasty) == "a = 1"


@pytest.mark.parametrize(
    ("document", "answer", "expected"),
    [
        ("def f():\n    ‸\n", "a = 1\n\ndef g():\n    pa", "a = 1"),
        ("def f():\n    ‸\n", "a = 1\n    b = 2", None),
        ("x = ‸\n", "f(1, 2", None),
        ("    a()\n    ‸\n    run(all)\n    z()\n", "b()\n    run(all)\n    c()\n", "b()"),
    ],
)
def test_an_answer_that_is_broken_off_ends_where_it_likely_ended(document: str, answer: str, expected: str | None) -> None:
    window = place(document)
    stop = stops.broken_off(answer, window, stops.plan(window, "auto"))
    assert (answer[: stop.at] if stop else None) == expected


def test_one_line_that_also_stands_below_is_a_sister_until_the_model_runs_on() -> None:
    document = "    a()\n    ‸\n    run(all)\n    z()\n"
    assert kept("b()\n    run(all)\n    c()\n", document) == "b()\n    run(all)\n    c()\n"
    assert kept("b()\n    run(all)\n    c()\n    d()\n    e()\n", document) == "b()"
    assert kept("b()\n    run(all)\n    z()\n", document) == "b()"


def test_who_was_given_time_and_ran_on_is_told_from_who_was_cut_for_cause() -> None:
    window = place("def f():\n    ‸\n")
    plan = stops.plan(window, "auto")
    ran_on = stops.find("a = 1\n\n" + RUN_ON, window, plan)
    assert ran_on is not None
    assert ran_on.ran_on
    cut = stops.find("a = 1\n" * 3, window, plan)
    assert cut is not None
    assert not cut.ran_on


def test_a_model_that_runs_on_is_not_waited_for_and_one_that_ends_is() -> None:
    habit = Habit()
    assert habit.patience == PATIENCE
    for _ in range(9):
        habit = habit.after(ended=False, ran_on=True)
    assert habit.patience == 0
    chances = 0
    for _ in range(16):
        habit = habit.after(ended=False, ran_on=True)
        chances += habit.patience > 0
    assert chances == 2
    for _ in range(16):
        habit = habit.after(ended=True, ran_on=False)
    assert habit.patience == PATIENCE


@pytest.mark.parametrize("piece", [" ", "\n", " \n", "x + ", "(", "((((\n", "A word ", "<", "    a\n\n", "a\n  b\nc\n", "/*", '"""', "9"])
@pytest.mark.parametrize("language", ["python", "javascript"])
def test_no_look_at_an_answer_takes_long(piece: str, language: str) -> None:
    window = place("def f():\n    ‸\n    return x\n" * 3, language)
    text = (piece * 3072)[:3072]
    plan = stops.plan(window, "always")
    took = []
    for _ in range(5):
        start = time.thread_time()
        stops.find(text, window, plan)
        took.append(time.thread_time() - start)
    assert min(took) < 0.01


@pytest.mark.parametrize(
    ("document", "language", "expected"),
    [
        ('x = {"a":‸\n', "python", STATEMENT),
        ("f = lambda x:‸\n", "python", STATEMENT),
        ("def f(\n    a,\n):‸\n", "python", SEVERAL),
        ("if a and (\n    b\n):‸\n", "python", SEVERAL),
        ("x = a if b else‸\n", "python", STATEMENT),
        ("s = 'note:‸\n", "python", STATEMENT),
        ("x = a ? b :‸\n", "javascript", STATEMENT),
        ("  case 1:‸\n", "javascript", SEVERAL),
        ("let a:‸\n", "typescript", STATEMENT),
        ("} else‸\n", "c", SEVERAL),
        ("a:‸\n", "yaml", SEVERAL),
        ("if x then‸\n", "lua", SEVERAL),
        ("/* One thing:‸\n */\n", "c", ONE),
    ],
)
def test_what_only_looks_like_an_opener_wants_a_statement(document: str, language: str, expected: Plan) -> None:
    assert stops.plan(place(document, language), "auto") == expected


def test_after_an_accept_what_comes_next_may_be_several_lines() -> None:
    window = place("def f():\n    a = 1‸\n")
    assert stops.plan(window, "auto", accepted=True) == SEVERAL
    answer = "\n    b = 2\n    return a + b"
    assert kept(answer, "def f():\n    a = 1‸\n", plan=SEVERAL) == answer
    longer = "\n    b = 2\n\n" + "".join(f"    c{n} = a\n" for n in range(8))
    assert kept(longer, "def f():\n    a = 1‸\n", plan=SEVERAL) == longer


def test_a_comment_may_ask_for_code_and_may_go_on() -> None:
    document = "xs = []\n# Sort it‸\n"
    assert kept("\nxs.sort()\nxs.pop()\n", document) == "\nxs.sort()\nxs.pop()\n"
    assert kept(" by name.\nxs.sort()\n", document) == " by name."
    assert kept("\nxs.sort()\nxs.pop()\n", "x = 1  # Sort it‸\n") == "\nxs.sort()"


@pytest.mark.parametrize(
    ("document", "answer", "expected"),
    [
        ("def f():\n    ‸\n    return n\n", "n = 1\n\n# Test it:\nprint(f())\n```\nThis is it.", "n = 1"),
        ("def f():\n    ‸\n", "n = 1\n\n# Test.\nf()\nf()\nf()\n", "n = 1"),
        ("def f():\n    ‸\n", "n = 1\n\n# Test.\n<|endoftext|>", "n = 1\n\n# Test.\n"),
    ],
)
def test_who_loses_the_thread_did_so_where_the_block_likely_ended(document: str, answer: str, expected: str) -> None:
    assert kept(answer, document) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("\n    b = 1\nelse:\n    b = 2\nprint(b)\n", "\n    b = 1\nelse:\n    b = 2"),
        ("\n        b = 1\n\nelse:\n    b = 2\nprint(b)\n", "\n        b = 1"),
    ],
)
def test_a_branch_goes_on_with_the_block_only_if_no_blank_line_stands_before_it(answer: str, expected: str) -> None:
    assert kept(answer, "if a:‸\n") == expected


def test_lines_outside_of_everything_try_the_patience_twice_where_what_follows_is_inside() -> None:
    plan, said = msgspec.structs.replace(SEVERAL, patience=2), "d = 1\nprint(d)\n" + RUN_ON

    def n_waited(document: str) -> int:
        """Characters that were said before the stream was cut."""
        return next(n for n in range(len(said)) if stops.find(said[:n], place(document), plan) is not None)

    inside = "class C:\n    def f(self):\n        ‸\n        return a\n"
    assert n_waited(inside) < n_waited(inside.replace("‸\n", "‸\n\n"))
