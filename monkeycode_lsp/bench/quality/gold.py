"""Wrongly cut: the right answers themselves, told in pieces like a model's, must come out of the pipeline as they are."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Sequence

from monkeycode_lsp import config, prompt
from monkeycode_lsp.bench.quality import infilling
from monkeycode_lsp.bench.quality.infilling import Problem, Task
from monkeycode_lsp.bench.quality.pipeline import Pipeline, untimed
from monkeycode_lsp.bench.quality.report import Example, Part, gold
from monkeycode_lsp.domain import Chunk, Finish, Prompt, Trigger
from monkeycode_lsp.engines.base import Model

MOST_CHANGED = 0.01
"""Of answers with several lines; of single lines none."""
_PIECE = re.compile(r"\n+|[^\S\n]*(?:\w{1,6}|[^\w\s]{1,3})|[^\S\n]+")
"""About what a token is: a short word or some signs, with the blanks before it."""


class Reciting:
    """An engine that says whatever it was given last."""

    # The mutable state is that text; it changes from outside, between asks.

    def __init__(self) -> None:
        self.text = ""

    async def ready(self) -> Model:
        """See `Engine.ready`."""
        return Model(name="gold", family=prompt.by_name("qwen2.5-coder"), fingerprint="gold")

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:  # noqa: ARG002 - it does not listen
        """See `Engine.stream`."""
        for piece in pieces(self.text):
            yield Chunk(piece, n_tokens=1)
        yield Chunk("", finish=Finish.STOP)

    async def aclose(self) -> None:
        """Nothing was started."""


def pieces(text: str) -> list[str]:
    """All of the text, cut as a vocabulary would cut it."""
    return _PIECE.findall(text)


async def run(problems: Sequence[Problem], *, settings: config.Config, limit: int, say: Callable[[str, int, int], None]) -> Part:
    """Single lines, then runs of lines; at most `limit` of each, 0 for all."""
    single, several = (_some(tasks, limit) for tasks in (infilling.single_lines(problems), infilling.runs(problems)))
    engine = Reciting()
    examples: list[Example] = []
    n_done = 0

    async def n_changed(tasks: Sequence[Task], trigger: Trigger) -> int:
        nonlocal n_done
        before = len(examples)
        for task in tasks:
            examples.extend(await _changed(pipeline, engine, task, trigger))
            n_done += 1
            say("gold", n_done, 2 * (len(single) + len(several)))
        return len(examples) - before

    async with Pipeline.running(engine, untimed(settings)) as pipeline:
        figures = [
            gold(f"{name}, {how}", await n_changed(tasks, trigger), len(tasks), most)
            for trigger, how in ((Trigger.AUTOMATIC, "while typing"), (Trigger.INVOKED, "asked by key"))
            for name, tasks, most in (("single lines", single, 0.0), ("2 to 6 lines", several, MOST_CHANGED))
        ]
    return Part(
        "gold",
        "the right answers of HumanEval-Infilling, told in pieces, must be shown unchanged; blanks at the end of lines do not count",
        figures=tuple(figures),
        examples=tuple(examples),
    )


def _some(tasks: tuple[Task, ...], limit: int) -> tuple[Task, ...]:
    return infilling.shuffled(tasks)[:limit] if limit else tasks


async def _changed(pipeline: Pipeline, engine: Reciting, task: Task, trigger: Trigger) -> list[Example]:
    """Empty: it came out as it went in."""
    engine.text = task.gold
    shown = await pipeline.ask(f"file:///quality/{task.problem.entry_point}.py", task.before, task.after, trigger=trigger)
    if _bare(shown.text) == _bare(task.gold):
        return []
    how = "while typing" if trigger is Trigger.AUTOMATIC else "asked by key"
    return [Example(task.id, f"{how}: {'' if shown.text else shown.reason}", task.gold, {"shown": shown.text})]


def _bare(text: str) -> list[str]:
    return [line.rstrip() for line in text.split("\n")]
