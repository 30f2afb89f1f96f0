"""The quality benchmark from its parts: what needs no model first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from monkeycode_lsp import config, folders
from monkeycode_lsp.bench.engine_report import Figure
from monkeycode_lsp.bench.engine_systems import own_home
from monkeycode_lsp.bench.quality import crossfile, filling, gold, infilling, packages, sandbox
from monkeycode_lsp.bench.quality.answers import Answer, Remembering
from monkeycode_lsp.bench.quality.infilling import Problem, Task
from monkeycode_lsp.bench.quality.ledger import Ledger
from monkeycode_lsp.bench.quality.progress import Progress
from monkeycode_lsp.bench.quality.report import FEWEST, Done, Part, Report, across, examples, filled, judged, way
from monkeycode_lsp.bench.quality.verdicts import Verdicts
from monkeycode_lsp.engines.local.native import NativeEngine

PARTS = ("gold", "infilling", "multiline", "crossfile")
WITHOUT_MODEL = ("gold",)
_WITH_TESTS = ("infilling", "multiline")
_SEVERAL = 200
"""How many of the tasks with several lines are asked, where no limit is set."""
_EXAMPLES = 400
_ANSWERS, _VERDICTS, _PACKAGES = "answers.jsonl", "verdicts.jsonl", "packages"


class Plan(msgspec.Struct, frozen=True):
    """What is to be done."""

    parts: tuple[str, ...] = PARTS
    limit: int = 0
    """Most tasks of each part; 0: all, or as many as is usual."""
    fresh: bool = False
    """Whether what earlier runs have found is forgotten."""


async def run(model: Path | None, plan: Plan, *, settings: config.Config, say: Callable[[str], None]) -> Report:
    """The parts of the plan; `model` may be None where none of them needs one."""
    folder = folders.cache() / "benchmark" / "quality"  # before the home changes
    if plan.fresh:
        for known in (_ANSWERS, _VERDICTS):
            (folder / known).unlink(missing_ok=True)
    problems = infilling.problems() if set(plan.parts) - {"crossfile"} else ()
    if set(plan.parts) & set(_WITH_TESTS):
        sandbox.check()
    if "crossfile" in plan.parts:
        await asyncio.to_thread(packages.fetch, folder / _PACKAGES, say=say)
    progress = Progress(say)
    parts: list[Part] = []
    name = ""
    with own_home():
        if "gold" in plan.parts:
            part = await gold.run(problems, settings=settings, limit=plan.limit, say=progress)
            parts.append(msgspec.structs.replace(part, figures=judged(part.figures, plan.limit or FEWEST)))
        if model is not None and set(plan.parts) - set(WITHOUT_MODEL):
            async with _engine(settings.local, model, folder) as engine:
                name = (await engine.ready()).name
                parts += [part async for part in _asked(engine, problems, folder, plan=plan, settings=settings, say=progress)]
    return Report(name, tuple(parts))


async def _asked(
    engine: Remembering, problems: Sequence[Problem], folder: Path, *, plan: Plan, settings: config.Config, say: Progress
) -> AsyncIterator[Part]:
    """The parts that ask a model."""
    with Verdicts(folder / _VERDICTS) as verdicts:
        for name in _WITH_TESTS:
            if name in plan.parts:
                yield await _filled(name, problems, engine, verdicts, limit=plan.limit, settings=settings, say=say)
    if "crossfile" in plan.parts:
        wheels = packages.wheels(folder / _PACKAGES)
        done = await crossfile.run(engine, wheels, settings=settings, limit=plan.limit, say=lambda n, total: say("crossfile", n, total))
        about = f"{len(done)} lines of {len(wheels)} packages that use a name of another file, with snippets and without"
        yield _part("crossfile", about, done, across(done))


async def _filled(
    name: str,
    problems: Sequence[Problem],
    engine: Remembering,
    verdicts: Verdicts,
    *,
    limit: int,
    settings: config.Config,
    say: Progress,
) -> Part:
    single = name == "infilling"
    tasks = infilling.shuffled(infilling.single_lines(problems) if single else infilling.runs(problems))
    n_all = len(tasks)
    tasks = tasks[: limit or (n_all if single else _SEVERAL)]
    say(name, 0, len(tasks))
    n_passed_gold = await _gold_passes(tasks, verdicts)
    done = await filling.fill(tasks, engine, verdicts, settings=settings, single=single, say=lambda n: say(name, n, len(tasks)))
    ends = "at the first line end behind its first sign" if single else "where the model ends it"
    about = (
        f"HumanEval-Infilling, {'one line' if single else '2 to 6 lines'} taken out, {len(tasks)} of {n_all} tasks; the raw call has the "
        f"family's plain template with the whole text before and after, is greedy, and ends {ends}, as `our prompt` does"
    )
    return _part(name, about, done, filled(done, n_gold=len(tasks), n_passed_gold=n_passed_gold, judged=single))


def _part(name: str, about: str, done: Sequence[Done], figures: tuple[Figure, ...]) -> Part:
    return Part(name, about, {one: way(done, one) for one in done[0].said}, judged(figures, len(done)), examples(done, _EXAMPLES))


async def _gold_passes(tasks: Sequence[Task], verdicts: Verdicts) -> int:
    return sum(await asyncio.gather(*(verdicts.passes(task.program(task.gold)) for task in tasks)))


@asynccontextmanager
async def _engine(settings: config.Local, model: Path, folder: Path) -> AsyncIterator[Remembering]:
    """The compiled engine, asked only for what is not known yet."""
    engine = NativeEngine(
        settings=msgspec.structs.replace(settings, drafts="off", draft_model="", linger_seconds=0),
        model=model,
        notify=lambda _message: None,
    )
    try:
        yield Remembering(engine, Ledger(folder / _ANSWERS, Answer))
    finally:
        await engine.aclose()
