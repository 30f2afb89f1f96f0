"""What the quality benchmark tells: parts with the figures of each way, and goals that are met or missed.  Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

import msgspec

from monkeycode_lsp.bench.engine_report import Figure, above, at_least, at_most
from monkeycode_lsp.bench.quality import chance, scores

RAW, PROMPT, WHOLE = "raw FIM call", "our prompt", "our prompt and filters"
BY_DEFAULT = "by default, several lines allowed"
"""Where one line is wanted, `WHOLE` is asked for one line, like the others; a user sees more where more is likely."""
WITH, WITHOUT = "with snippets", "without, larger window"
GAIN_POINTS = 5.0
"""Of exact match, that snippets should bring."""
_HUNDRED = 100.0
FEWEST = 50
"""Tasks of a part; below, a rate says little."""


class Said(msgspec.Struct, frozen=True):
    """One way's answer to a task."""

    text: str
    exact: bool
    similarity: float
    passed: bool | None = None
    """Its tests; None: it has none."""


class Done(msgspec.Struct, frozen=True):
    """One task with the answers of all ways."""

    id: str
    gold: str
    said: dict[str, Said]
    n_faults: int | None = None
    """Parse errors that the suggestion shown has brought into the document; None: no grammar."""
    shown: bool = True
    reason: str = ""
    """Why nothing was shown."""
    n_snippets: int = 0
    n_prompt: dict[str, int] = {}
    """Characters of each way's prompt."""


class Way(msgspec.Struct, frozen=True, rename="camel"):
    """One way over all tasks."""

    n: int
    exact: float
    similarity: float
    """Mean of 1 - edit distance / length."""
    passed: float | None = None
    interval: chance.Interval | None = None
    """Of `passed`, or else of `exact`."""


class Example(msgspec.Struct, frozen=True):
    """A task worth a look."""

    id: str
    what: str
    gold: str
    said: dict[str, str]


class Part(msgspec.Struct, frozen=True, rename="camel"):
    """One kind of tasks."""

    name: str
    about: str
    """What was done, in one sentence."""
    ways: dict[str, Way] = {}
    figures: tuple[Figure, ...] = ()
    examples: tuple[Example, ...] = ()
    left_out: str = ""
    """Why there are no figures; empty: there are."""


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """One run.  The field names are an interface: other programs read this JSON."""

    model: str
    """Empty: none was needed."""
    parts: tuple[Part, ...]
    version: int = 1

    @property
    def n_missed(self) -> int:
        """Goals that were not reached."""
        return sum(figure.ok is False for part in self.parts for figure in part.figures)

    @property
    def n_open(self) -> int:
        """Goals that so few tasks do not judge."""
        return sum(figure.ok is None and figure.goal is not None for part in self.parts for figure in part.figures)


def said(text: str, gold: str, *, passed: bool | None = None) -> Said:
    """With what it is worth."""
    return Said(text, scores.is_exact(text, gold), scores.similarity(text, gold), passed)


def way(tasks: Sequence[Done], name: str) -> Way:
    """Its figures over all tasks."""
    answers = [task.said[name] for task in tasks]
    exact = statistics.mean(answer.exact for answer in answers)
    similarity = statistics.mean(answer.similarity for answer in answers)
    n = len(answers)
    if any(answer.passed is None for answer in answers):
        return Way(n, exact, similarity, None, chance.wilson(sum(answer.exact for answer in answers), n))
    n_passed = sum(bool(answer.passed) for answer in answers)
    return Way(n, exact, similarity, n_passed / n, chance.wilson(n_passed, n))


def filled(tasks: Sequence[Done], *, n_gold: int, n_passed_gold: int, judged: bool) -> tuple[Figure, ...]:
    """Of tasks with tests.  Not `judged`: exact match has no goal."""
    return (
        at_least(f"tests passed by the solutions themselves, of {n_gold}", n_passed_gold, n_gold),
        *_compared(tasks, "pass@1", WHOLE, RAW, judged=True),
        *_compared(tasks, "exact match", WHOLE, RAW, judged=judged, better=True),
        *_compared(tasks, "pass@1", PROMPT, RAW),
        *_compared(tasks, "pass@1", WHOLE, PROMPT),
        *shown(tasks),
    )


def across(tasks: Sequence[Done]) -> tuple[Figure, ...]:
    """Of the same tasks with snippets and without."""
    exact = [float(task.said[WITH].exact) - float(task.said[WITHOUT].exact) for task in tasks]
    similar = [task.said[WITH].similarity - task.said[WITHOUT].similarity for task in tasks]
    asked = [task for task in tasks if len(task.n_prompt) > 1]
    lengths = {name: statistics.mean(task.n_prompt[name] for task in asked) if asked else 0.0 for name in (WITH, WITHOUT)}
    return (
        at_least("exact match: with snippets - without", _HUNDRED * statistics.mean(exact), GAIN_POINTS, "points"),
        *_between("exact match", exact),
        Figure(f"   won {exact.count(1.0)}, lost {exact.count(-1.0)}; McNemar's p", chance.mcnemar(exact.count(1.0), exact.count(-1.0))),
        Figure("edit similarity: with snippets - without", _HUNDRED * statistics.mean(similar), "points"),
        *_between("edit similarity", similar),
        Figure("snippets in a prompt, mean", statistics.mean(task.n_snippets for task in tasks)),
        Figure("characters of a prompt with snippets, mean", lengths[WITH]),
        Figure("characters of a prompt without, mean", lengths[WITHOUT]),
        *shown(tasks),
    )


def _between(name: str, differences: Sequence[float]) -> Iterator[Figure]:
    found = chance.bootstrap(differences)
    yield Figure(f"   {name}, 95 % of the time at least", _HUNDRED * found.low, "points")
    yield Figure(f"   {name}, and at most", _HUNDRED * found.high, "points")


def judged(figures: Sequence[Figure], n: int) -> tuple[Figure, ...]:
    """Of `n` tasks: too few of them give no verdict on what is a matter of numbers."""
    return tuple(
        msgspec.structs.replace(figure, ok=None) if n < FEWEST and figure.goal is not None and _is_rate(figure) else figure
        for figure in figures
    )


def _is_rate(figure: Figure) -> bool:
    """And nothing that must never happen."""
    return bool(figure.unit) and not (figure.bound == "most" and figure.goal == 0)


def shown(tasks: Sequence[Done]) -> tuple[Figure, ...]:
    """What is good for any suggestion."""
    known = [task.n_faults for task in tasks if task.n_faults is not None]
    return (
        *((at_most("parse errors brought in by what was shown", float(sum(known)), 0.0),) if known else ()),
        Figure("asks that were shown something", statistics.mean(task.shown for task in tasks), "share"),
    )


def gold(name: str, n_changed: int, n: int, most: float) -> Figure:
    """`most`: the largest share that is good enough."""
    return at_most(f"{name} changed, of {n}", n_changed / n if n else 0.0, most, "share")


def _compared(tasks: Sequence[Done], figure: str, ours: str, other: str, *, judged: bool = False, better: bool = False) -> Iterator[Figure]:
    """`better`: to be as good is not enough."""
    pairs = [(_is_good(task.said[ours], figure), _is_good(task.said[other], figure)) for task in tasks]
    n_won = sum(one and not another for one, another in pairs)
    n_lost = sum(another and not one for one, another in pairs)
    points = _HUNDRED * (n_won - n_lost) / len(pairs)
    name = f"{figure}: {ours} - {other}"
    if judged:
        yield above(name, points, 0.0, "points") if better else at_least(name, points, 0.0, "points")
    else:
        yield Figure(name, points, "points")
    yield Figure(f"   won {n_won}, lost {n_lost}; McNemar's p", chance.mcnemar(n_won, n_lost))


def _is_good(answer: Said, figure: str) -> bool:
    return bool(answer.passed) if figure == "pass@1" else answer.exact


def examples(tasks: Sequence[Done], n: int) -> tuple[Example, ...]:
    """Where our way lost against the raw call, and what brought in parse errors, at most `n`."""
    found = [
        Example(task.id, what, task.gold, {name: answer.text for name, answer in task.said.items()})
        for task in tasks
        for what in _faults(task)
    ]
    return tuple(found[:n])


def _faults(task: Done) -> Iterator[str]:
    if task.n_faults:
        yield "parse errors"
    if WITH in task.said:
        if task.said[WITHOUT].exact and not task.said[WITH].exact:
            yield f"lost by the snippets{f': {task.reason}' if task.reason else ''}"
        elif task.said[WITH].similarity < task.said[WITHOUT].similarity:
            yield f"less like it with snippets{f': {task.reason}' if task.reason else ''}"
        return
    raw, asked, whole = (task.said[name] for name in (RAW, PROMPT, WHOLE))
    if raw.passed and not asked.passed:
        yield "lost by the prompt"
    if asked.passed and not whole.passed:
        yield f"lost by the filters{f': {task.reason}' if task.reason else ''}"
    elif asked.exact and not whole.exact:
        yield "exact match lost by the filters"
