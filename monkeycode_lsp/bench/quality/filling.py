"""Tasks with tests, filled in three ways by the same model: asked straight, with our prompt, and as the user would see it.

The raw call is the family's plain template with the whole text before and after the gap, greedy.  A single line
ends at the first line end behind its first sign, for the raw call and for our prompt alike; several lines end where
the model ends them.  Our whole way is the real pipeline, asked by key; for a single line with `completion.multiline`
at "never", and once more as it is set.
"""

from __future__ import annotations

import ast
import asyncio
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing

import msgspec

from monkeycode_lsp import config, prompt
from monkeycode_lsp.bench.quality.answers import Remembering
from monkeycode_lsp.bench.quality.infilling import Task
from monkeycode_lsp.bench.quality.pipeline import Pipeline, Shown, untimed
from monkeycode_lsp.bench.quality.report import BY_DEFAULT, PROMPT, RAW, WHOLE, Done, Said, said
from monkeycode_lsp.bench.quality.verdicts import Verdicts
from monkeycode_lsp.domain import Prompt, Window
from monkeycode_lsp.syntax import faults

_FOLDER = "file:///quality"

_WITHIN_MS = 5_000.0
"""For one parse: here nobody waits."""


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
    usual = untimed(settings)
    lines = msgspec.structs.replace(usual.completion, multiline="never") if single else usual.completion
    judging: list[asyncio.Task[Done]] = []
    as_asked = msgspec.structs.replace(usual, completion=lines)
    async with asyncio.TaskGroup() as group:
        for task in tasks:
            texts = {RAW: await read(engine, await _raw(task, engine, usual), single=single)}
            engine.heard.clear()
            shown = await _ask(engine, as_asked, task)
            asked = [heard for heard in engine.heard if heard.max_tokens]
            texts |= {PROMPT: await read(engine, asked[-1], single=single) if asked else "", WHOLE: shown.text}
            if single:
                texts[BY_DEFAULT] = (await _ask(engine, usual, task)).text
            judging.append(group.create_task(_judged(task, texts, verdicts, reason="" if shown.text else shown.reason)))
            say(len(judging))
    return [one.result() for one in judging]


async def _ask(engine: Remembering, settings: config.Config, task: Task) -> Shown:
    """In a session of its own: a document of another task may hold the very line."""
    async with Pipeline.running(engine, settings) as pipeline:
        return await pipeline.ask(f"{_FOLDER}/{task.problem.entry_point}.py", task.before, task.after)


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
        n_faults=_most(brought_in(task.before, texts[name], task.after) for name in (WHOLE, BY_DEFAULT) if name in texts),
        shown=bool(texts[WHOLE]),
        reason=reason,
    )


def _most(counts: Iterable[int | None]) -> int | None:
    return max((n for n in counts if n is not None), default=None)


def brought_in(before: str, text: str, after: str, language: str = "python") -> int | None:
    """Parse errors that the document has more with `text` in it, for Python by its own parser too; None: no grammar."""
    without, within = (faults.count(document, language, within_ms=_WITHIN_MS) for document in (before + after, before + text + after))
    if without is None or within is None:
        return None
    more = max(0, within - without)
    if more or language != "python":
        return more
    # Who begins a block will write it.
    is_sound = _is_python(before + text + after) or (text.rstrip().endswith(":") and _is_python(f"{before}{text} pass{after}"))
    return int(_is_python(before + after) and not is_sound)


def _is_python(text: str) -> bool:
    try:
        with warnings.catch_warnings(action="ignore"):
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True
