"""The product, asked as an editor asks it, with nothing left to chance: the real documents, the real completer.

What depends on time is off: no debounce, nothing is worked out ahead or remembered, and neither a slow machine's
deadline nor its smaller window counts.  The figures are about what is said, not about when.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

import msgspec

from monkeycode_lsp import config
from monkeycode_lsp.completer import Completer
from monkeycode_lsp.documents import Documents
from monkeycode_lsp.domain import Ask, OutcomeKind, Trigger
from monkeycode_lsp.engines.base import Engine
from monkeycode_lsp.errors import MonkeyCodeError
from monkeycode_lsp.gathering import Gathering
from monkeycode_lsp.observe.outcomes import Outcomes
from monkeycode_lsp.recall.lookup import Recall
from monkeycode_lsp.recall.memory import Memory
from monkeycode_lsp.text import Encoding
from monkeycode_lsp.turn import Turn

_LONG_MS = 600_000
_LONG_S = 3_600.0


class Shown(msgspec.Struct, frozen=True):
    """What the user would see at the cursor."""

    text: str
    """Empty: nothing."""
    kind: OutcomeKind
    reason: str


class Pipeline:
    """One configuration's."""

    # The mutable state is the documents that are open and the last error.

    def __init__(self, completer: Completer, outcomes: Outcomes, errors: list[MonkeyCodeError], workspace: str) -> None:
        self._completer = completer
        self._outcomes = outcomes
        self._errors = errors
        self._documents = Documents(Encoding.UTF32)
        if workspace:
            self._documents.add_folder(workspace)

    @classmethod
    @asynccontextmanager
    async def running(
        cls, engine: Engine, settings: config.Config, *, workspace: str = "", gathering: Gathering | None = None
    ) -> AsyncIterator[Self]:
        """With an engine that is ready.  `workspace`: URI of the folder that is open."""
        outcomes, errors = Outcomes(), list[MonkeyCodeError]()
        completer = _completer(engine, settings, outcomes, errors, gathering)
        try:
            await completer.warm()
            if errors:
                raise errors[0]
            yield cls(completer, outcomes, errors, workspace)
        finally:
            await completer.retire()

    def meet(self, uri: str, text: str, *, language: str = "python") -> None:
        """A document that the user has open besides."""
        self._documents.open(uri, language, 1, text)
        snapshot = self._documents.snapshot(uri, 0, 0)
        if snapshot is not None:
            self._completer.met(snapshot)

    async def ask(self, uri: str, before: str, after: str, *, language: str = "python", trigger: Trigger = Trigger.INVOKED) -> Shown:
        """Between `before` and `after`.  Raises when the engine fails."""
        self._documents.open(uri, language, 1, before + after)
        line = before.count("\n")
        snapshot = self._documents.snapshot(uri, line, len(before) - before.rfind("\n") - 1)
        if snapshot is None:
            raise RuntimeError(uri)
        try:
            suggestions = await self._completer.complete(Ask(snapshot, trigger))
        finally:
            self._documents.close(uri)
            self._completer.closed(snapshot.uri)
        outcome = self._outcomes.last(1)[-1]
        if outcome.kind is OutcomeKind.FAILED:
            raise self._errors.pop() if self._errors else RuntimeError(outcome.reason)
        return Shown(suggestions[0].text if suggestions else "", outcome.kind, outcome.reason)


def untimed(settings: config.Config) -> config.Config:
    """Without anything that depends on how quick the machine or the user is."""
    return msgspec.structs.replace(
        settings,
        debounce=msgspec.structs.replace(settings.debounce, mode="off"),
        look_ahead=config.LookAhead(mode="off", read=False),
        cache=msgspec.structs.replace(settings.cache, enabled=False),
        completion=msgspec.structs.replace(settings.completion, deadline_ms=_LONG_MS, candidates=1, temperature=0.0),
        context=msgspec.structs.replace(settings.context, budget_ms=_LONG_MS),
    )


def _completer(
    engine: Engine, settings: config.Config, outcomes: Outcomes, errors: list[MonkeyCodeError], gathering: Gathering | None
) -> Completer:
    memory = Memory(most_bytes=1, ttl_s=1, clock=asyncio.get_running_loop().time)
    return Completer(
        settings=settings,
        engine=engine,
        recall=Recall(memory, showings=0),
        turn=Turn(),
        outcomes=outcomes,
        report=errors.append,
        gathering=gathering,
        read_s=_LONG_S,
        on_battery=lambda: False,
    )
