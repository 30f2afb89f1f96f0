"""What the outcome of one ask will say: collected on the way, told once at the end.  Holds no source text."""

from __future__ import annotations

import itertools
import time

import msgspec

from monkeycode_lsp.context import window as windows
from monkeycode_lsp.domain import Ask, Origin, Outcome, OutcomeKind, Suggestion, Window
from monkeycode_lsp.generation import Generation
from monkeycode_lsp.observe.timing import Stages
from monkeycode_lsp.silence.judge import Verdict

_SHOWN = {
    Origin.ENGINE: "Shown.",
    Origin.ADOPTED: "Shown; it was being worked out already.",
    Origin.TYPED_THROUGH: "Shown, the rest of what you are typing.",
    Origin.MEMORY: "Shown, remembered.",
    Origin.DISK: "Shown, remembered from another window or an earlier run.",
    Origin.SHARED: "Shown, remembered by the team's cache.",
}

_numbers = itertools.count(1)


class Account:
    """Collects what the outcome of one ask will say."""

    def __init__(self, ask: Ask) -> None:
        self.id = next(_numbers)
        self.stages = Stages()
        self._ask = ask
        self._at = time.time()
        self._kind = OutcomeKind.FAILED
        self._reason = ""
        self.was_unfit = False
        """Whether the model said something, and filters left nothing of it."""
        self._window: Window | None = None
        self._shown: Suggestion | None = None
        self._generation: Generation | None = None
        self._model = ""
        self._confidence: float | None = None
        self._odds: float | None = None

    def saw(self, window: Window) -> None:
        self._window = window

    def measured(self, generation: Generation) -> None:
        self._generation = generation

    def judged(self, suggestion: Suggestion, verdict: Verdict, model: str) -> None:
        """How sure the model (its name) was, whether it is shown or not."""
        self._model, self._confidence, self._odds = model, suggestion.confidence, verdict.odds

    def ended(self, kind: OutcomeKind, reason: str) -> None:
        self._kind, self._reason = kind, reason

    @property
    def has_failed(self) -> bool:
        """Whether it ended so."""
        return self._kind is OutcomeKind.FAILED

    def nothing(self, kind: OutcomeKind, reason: str) -> list[Suggestion]:
        self.ended(kind, reason)
        return []

    def why_late(self) -> str:
        """Why nothing was said when the time was up."""
        if self.stages.ms.get("ready", 0.0) > self.stages.total_ms / 2:
            return "The engine was still starting for most of the time; the next request will be quicker."
        if self.stages.ms.get("debounce", 0.0) > self.stages.total_ms / 2:
            return "The wait for the next key took all the time there is (settings debounce.maxMs and completion.deadlineMs)."
        return "The engine did not answer in time (setting completion.deadlineMs)."

    def shows(self, suggestion: Suggestion) -> list[Suggestion]:
        self._shown = msgspec.structs.replace(suggestion, id=self.id)
        self.ended(OutcomeKind.SHOWN, _SHOWN[suggestion.origin])
        return [self._shown]

    def outcome(self) -> Outcome:
        snapshot, usage = self._ask.snapshot, self._generation.usage if self._generation else None
        name = windows.relative_path(snapshot.uri, "")
        return Outcome(
            id=self.id,
            at=self._at,
            kind=self._kind,
            reason=self._reason,
            language=snapshot.language,
            place=f"{name}:{snapshot.line + 1}:{snapshot.column + 1}",
            trigger=self._ask.trigger.value,
            origin=self._shown.origin.value if self._shown else "",
            stages_ms=self.stages.ms,
            total_ms=self.stages.total_ms,
            n_prefix=len(self._window.prefix) if self._window else 0,
            n_suffix=len(self._window.suffix) if self._window else 0,
            n_shown=len(self._shown.text) if self._shown else 0,
            reused_tokens=usage.reused if usage else None,
            read_tokens=usage.read if usage else None,
            generated_tokens=self._generation.n_tokens if self._generation else None,
            first_ms=self._generation.first_ms if self._generation else None,
            model=self._model,
            confidence=self._confidence,
            odds=self._odds,
        )


def why_empty(generation: Generation, emptied_by: str) -> str:
    if not generation.text.strip():
        return "The model had nothing to add here."
    if emptied_by:
        return f"What the model said did not fit here (rule: {emptied_by})."
    return "What the model said does not continue the text as it is now."
