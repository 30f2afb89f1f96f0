"""Budgets in the engine's own tokens: what a window's lines take, without any ask waiting for it.

An engine that has a tokenizer at hand counts lines in the background; until it has, and for engines that have none, lines are
estimated, at rates that follow what prompts really took.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from monkeycode_lsp.context.calibration import Calibration
from monkeycode_lsp.context.line_counts import LineCounts
from monkeycode_lsp.context.tokens import Counter, Estimate
from monkeycode_lsp.domain import Plain, Prompt, Usage
from monkeycode_lsp.engines.base import Engine, Model

_AT_ONCE = 512
"""Lines in one go: well under a millisecond of the engine's time each hundred."""


@runtime_checkable
class Counting(Protocol):
    """An engine that may have the model's tokenizer at hand."""

    async def count(self, texts: Sequence[str]) -> list[int] | None:
        """Tokens of each text; None: it cannot tell now.  Disturbs no generation.  Raises nothing but cancellation."""
        ...


@runtime_checkable
class Delegating(Protocol):
    """An engine that has others answer."""

    def answering(self, model: str) -> Engine:
        """The one that answers a prompt for the model of that fingerprint."""
        ...


class TokenCounts:
    """What text costs at one engine."""

    # The mutable state is the rates, the counts of the model that was asked last, which model that is, which engine counts for it,
    # and the task that has lines counted; it changes in the methods below only.

    def __init__(self, engine: Engine) -> None:
        self._delegating = engine if isinstance(engine, Delegating) else None
        self._answering = engine
        self._counting = engine if isinstance(engine, Counting) else None
        self._calibration = Calibration()
        self._lines = LineCounts()
        self._model = ""
        self._task: asyncio.Task[None] | None = None

    def at(self, model: Model | None, language: str) -> Counter:
        """For `windows.around`; answers at once."""
        name = model.fingerprint if model is not None else ""
        rates = self._calibration.rates(name, language)
        if self._delegating is not None:
            self._answers(self._delegating.answering(name))
        if self._counting is None or model is None:
            return Estimate(rates)
        if name != self._model:
            self._model, self._lines = name, LineCounts()
        return self._lines.at(rates)

    def count_soon(self) -> None:
        """Have the lines counted that the last windows could only estimate."""
        if self._counting is not None and self._lines.waits and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._count(self._counting, self._lines))

    def learn(self, language: str, prompt: Prompt, usage: Usage) -> None:
        """What a prompt really took, as the engine told."""
        n_tokens = usage.prompt_tokens
        if n_tokens is None:
            return
        text = "".join(segment.text for segment in prompt.segments if isinstance(segment, Plain))
        self._calibration.learn(prompt.model, language, text, n_tokens)

    async def aclose(self) -> None:
        """Count no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _answers(self, engine: Engine) -> None:
        if engine is not self._answering:
            self._answering, self._counting = engine, engine if isinstance(engine, Counting) else None

    async def _count(self, engine: Counting, lines: LineCounts) -> None:
        while texts := lines.take_waiting(_AT_ONCE):
            counts = await engine.count(texts)
            if counts is None:
                return  # they wait again when they are asked for again
            lines.learn(texts, counts)
