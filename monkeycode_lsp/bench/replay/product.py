"""The product in a simulation: the real documents and the real pipeline, driven as `server` drives them."""

from __future__ import annotations

import asyncio

from monkeycode_lsp import config
from monkeycode_lsp.bench.replay.trace import Trace
from monkeycode_lsp.completer import Completer
from monkeycode_lsp.documents import Documents
from monkeycode_lsp.domain import Ask, Outcome, OutcomeKind
from monkeycode_lsp.engines.base import Engine
from monkeycode_lsp.errors import SupersededError
from monkeycode_lsp.observe.outcomes import Outcomes
from monkeycode_lsp.recall.lookup import Recall
from monkeycode_lsp.recall.memory import Memory
from monkeycode_lsp.text import Change, Encoding
from monkeycode_lsp.turn import Turn


async def start(trace: Trace, engine: Engine, settings: config.Config) -> Product:
    """With the trace's document open and the engine ready."""
    documents = Documents(Encoding.UTF32, clock=asyncio.get_running_loop().time)
    outcomes = _Outcomes()
    completer = _completer(engine, settings, outcomes)
    uri = f"file:///replay/{trace.name}"
    documents.open(uri, trace.language, 1, trace.start)
    await completer.warm()
    return Product(uri, documents, completer, outcomes)


class Product:
    """One document in it, as an editor sees it."""

    # The mutable state is the cursor.

    def __init__(self, uri: str, documents: Documents, completer: Completer, outcomes: _Outcomes) -> None:
        self._uri = uri
        self._documents = documents
        self._completer = completer
        self._outcomes = outcomes
        self._position = (0, 0)

    @property
    def n_failed(self) -> int:
        """Asks that failed."""
        return self._outcomes.n_failed

    def edit(self, index: int, changes: list[Change], position: tuple[int, int]) -> None:
        """Follow the key; the cursor stands at `position` now."""
        edited = self._documents.change(self._uri, index + 2, changes)
        self._position = position
        if edited is not None:
            self._completer.edited(edited)

    async def ask(self) -> tuple[str, str]:
        """Text to show at the cursor and its origin.  Raises `SupersededError`."""
        snapshot = self._documents.snapshot(self._uri, *self._position)
        if snapshot is None:
            return "", ""
        since_edit_ms, inserted = self._documents.last_edit(self._uri)
        suggestions = await self._completer.complete(Ask(snapshot, since_edit_ms=since_edit_ms, inserted=inserted))
        if not self._documents.is_current(snapshot):
            raise SupersededError
        return (suggestions[0].text, suggestions[0].origin.value) if suggestions else ("", "")

    async def aclose(self) -> None:
        """Stop everything."""
        await self._completer.retire()


class _Outcomes(Outcomes):
    """Counts what a replay must not have."""

    n_failed = 0

    def add(self, outcome: Outcome) -> None:
        super().add(outcome)
        self.n_failed += outcome.kind is OutcomeKind.FAILED


def _completer(engine: Engine, settings: config.Config, outcomes: Outcomes) -> Completer:
    """The pipeline as `app` builds it, but with a memory of its own only: nothing of a replay is kept."""
    clock = asyncio.get_running_loop().time
    memory = Memory(most_bytes=settings.cache.memory_bytes, ttl_s=settings.cache.memory_ttl_seconds, clock=clock)
    return Completer(
        settings=settings,
        engine=engine,
        recall=Recall(memory, showings=settings.cache.showings),
        turn=Turn(),
        outcomes=outcomes,
        report=lambda _error: None,  # it is an outcome too, and counted there
        on_battery=lambda: False,
    )
