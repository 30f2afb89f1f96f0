"""Tasks with tests, filled in three ways by the same model: asked straight, with our prompt, and as the user would see it.

The raw call is the family's plain template with the whole text before and after the gap, greedy.  A single line
ends at the first line end behind its first sign, for the raw call and for our prompt alike; several lines end where
the model ends them.  Our whole way is the real pipeline, asked by key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing

from monkeycode_lsp import config, prompt
from monkeycode_lsp.bench.quality.answers import Remembering
from monkeycode_lsp.bench.quality.infilling import Task
from monkeycode_lsp.bench.quality.pipeline import Pipeline, untimed
from monkeycode_lsp.bench.quality.report import PROMPT, RAW, WHOLE, Done, Said, said
from monkeycode_lsp.bench.quality.verdicts import Verdicts
from monkeycode_lsp.domain import Prompt, Window
from monkeycode_lsp.syntax import faults

_FOLDER = "file:///quality"


async def fill(
    tasks: Sequence[Task],
    engine: Remembering,
    verdicts: Verdicts,
    *,
    settings: config.Config,
    single: bool,
    say: Callable[[int], None],
) -> list[Done]:
    """All tasks, in order; programs run while the model goes on.  `say` hears how many the model has done."""
    settings = untimed(settings)
    judging: list[asyncio.Task[Done]] = []
    async with Pipeline.running(engine, settings) as pipeline, asyncio.TaskGroup() as group:
        for task in tasks:
            raw = await read(engine, await _raw(task, engine, settings), single=single)
            engine.heard.clear()
            shown = await pipeline.ask(f"{_FOLDER}/{task.problem.entry_point}.py", task.before, task.after)
            asked = [heard for heard in engine.heard if heard.max_tokens]
            prompted = await read(engine, asked[-1], single=single) if asked else ""
            texts = {RAW: raw, PROMPT: prompted, WHOLE: shown.text}
            judging.append(group.create_task(_judged(task, texts, verdicts, reason="" if shown.text else shown.reason)))
            say(len(judging))
    return [one.result() for one in judging]


async def _raw(task: Task, engine: Remembering, settings: config.Config) -> Prompt:
    window = Window(task.before, task.after, "python", f"{task.problem.entry_point}.py")
    family = (await engine.ready()).family
    return prompt.render(window, (), family, max_tokens=settings.completion.max_tokens)


async def read(engine: Remembering, asked: Prompt, *, single: bool) -> str:
    """What the model says, or the first line of it."""
    text = ""
    async with aclosing(engine.stream(asked)) as stream:
        async for chunk in stream:
            text += chunk.text
            if single and len(first_line(text)) < len(text):
                break
    return first_line(text) if single else text


def first_line(text: str) -> str:
    """Up to the first line end behind the first sign."""
    end = text.find("\n", len(text) - len(text.lstrip()))
    return text if end < 0 else text[:end]


async def _judged(task: Task, texts: dict[str, str], verdicts: Verdicts, *, reason: str) -> Done:
    programs = {name: task.program(text) for name, text in texts.items()}
    passed = dict(zip(texts, await asyncio.gather(*map(verdicts.passes, programs.values())), strict=True))
    answers: dict[str, Said] = {name: said(text, task.gold, passed=passed[name]) for name, text in texts.items()}
    return Done(
        id=task.id,
        gold=task.gold,
        said=answers,
        n_faults=brought_in(task.before, texts[WHOLE], task.after),
        shown=bool(texts[WHOLE]),
        reason=reason,
    )


def brought_in(before: str, text: str, after: str, language: str = "python") -> int | None:
    """Parse errors that the document has more with `text` in it; None: no grammar."""
    without, within = faults.count(before + after, language), faults.count(before + text + after, language)
    return None if without is None or within is None else max(0, within - without)
