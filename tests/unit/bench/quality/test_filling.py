"""The three ways, with a model that says what it is told."""

from __future__ import annotations

import sys

import pytest

from monkeycode_lsp import config
from monkeycode_lsp.bench.quality import filling, infilling
from monkeycode_lsp.bench.quality.answers import Answer, Remembering
from monkeycode_lsp.bench.quality.infilling import Problem
from monkeycode_lsp.bench.quality.ledger import Ledger
from monkeycode_lsp.bench.quality.report import BY_DEFAULT, PROMPT, RAW, WHOLE
from monkeycode_lsp.bench.quality.verdicts import Verdicts
from monkeycode_lsp.engines.scripted import Answer as Script
from monkeycode_lsp.engines.scripted import ScriptedEngine

PROBLEM = Problem(
    id="HumanEval/7",
    prompt="def f(a):\n    '''Twice.'''\n",
    solution="    b = a + a\n    c = b\n    return c\n",
    test="def check(candidate):\n    assert candidate(2) == 4\n",
    entry_point="f",
)


@pytest.mark.parametrize(
    ("text", "first"),
    [("a", "a"), ("a\nb", "a"), ("\n\n  a\nb", "\n\n  a"), ("", ""), ("\n", "\n"), ("a\n", "a"), ("  a", "  a")],
)
def test_the_first_line_ends_at_the_first_line_end_behind_a_sign(text, first):
    assert filling.first_line(text) == first


@pytest.mark.parametrize(
    ("before", "text", "after", "n"),
    [("x = (1,", " 2", ")\n", 0), ("x = (1,", " 2))", ")\n", 1), ("x = ", "1", "\n", 0), ("x = 1\n", "", "y = (\n", 0)],
)
def test_parse_errors_are_counted_against_the_document_without_the_suggestion(before, text, after, n):
    assert bool(filling.brought_in(before, text, after)) is bool(n)


def test_without_a_grammar_nothing_is_known_of_parse_errors():
    assert filling.brought_in("a", "b", "c", "klingon") is None


async def fill(tmp_path, chunks, *, single, tasks):
    engine = Remembering(ScriptedEngine([Script(chunks=chunks)]), Ledger(tmp_path / "answers.jsonl", Answer))
    said = []
    with Verdicts(tmp_path / "verdicts.jsonl") as verdicts:
        done = await filling.fill(tasks, engine, verdicts, settings=config.Config(), single=single, say=said.append)
    assert said == list(range(1, len(tasks) + 1))
    return done


@pytest.mark.skipif(sys.platform == "win32", reason="there are no limits on Windows")
async def test_a_single_line_is_asked_for_in_each_way_and_its_tests_are_run(tmp_path):
    task = infilling.single_lines([PROBLEM])[0]
    (done,) = await fill(tmp_path, ("    b = a", " * 2", "\n", "    d = 1\n"), single=True, tasks=[task])
    assert done.id == task.id
    assert {name: done.said[name].text for name in (RAW, PROMPT, WHOLE)} == dict.fromkeys((RAW, PROMPT, WHOLE), "    b = a * 2")
    assert [done.said[name].passed for name in (RAW, PROMPT, WHOLE)] == [True] * 3
    assert not done.said[WHOLE].exact
    assert done.said[BY_DEFAULT].text.startswith("    b = a * 2")
    assert (done.n_faults, done.shown, done.reason) == (0, True, "")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no limits on Windows")
async def test_several_lines_go_on_to_the_models_end(tmp_path):
    task = next(task for task in infilling.runs([PROBLEM]) if task.id.endswith("L0_L1"))
    (done,) = await fill(tmp_path, ("    b = a + a", "\n    c =", " b"), single=False, tasks=[task])
    assert set(done.said) == {RAW, PROMPT, WHOLE}
    assert done.said[RAW].text == done.gold
    assert done.said[RAW].passed
    assert done.said[RAW].exact


@pytest.mark.skipif(sys.platform == "win32", reason="there are no limits on Windows")
async def test_where_nothing_is_shown_the_reason_is_kept(tmp_path):
    task = infilling.single_lines([PROBLEM])[0]
    (done,) = await fill(tmp_path, ("",), single=True, tasks=[task])
    assert not done.shown
    assert done.reason
    assert done.said[WHOLE].text == ""
