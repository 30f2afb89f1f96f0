"""How long an automatic ask waits for the next key.  Arithmetic over given times only (pure)."""

from __future__ import annotations

import msgspec

from monkeycode_lsp import config
from monkeycode_lsp.domain import Ask, Trigger, Window
from monkeycode_lsp.pause import model as pauses
from monkeycode_lsp.pause.features import features
from monkeycode_lsp.pause.habit import Habit, kind_of

_AT_ONCE = frozenset({"newline", "opener", "text"})
"""A new line, an opener, and what was pasted or accepted: nothing is waited for."""
_RATE = 0.02
"""How far one surprise moves the user's own intercept."""
_FORGET = 0.998
_MOST_BIAS = 1.0
_KNOWN_ANSWERS = 3
_OUTLIER = 4.0
_LONGEST_GAP_MS = 3_600_000.0


class Expected(msgspec.Struct, frozen=True):
    """What was predicted for the ask after the last key."""

    chance: float
    """That the gap lasts as long as is needed, given that it had lasted until the ask."""
    needed_ms: float


class Rhythm(msgspec.Struct, frozen=True):
    """The user's and the engine's habits."""

    habit: Habit = Habit()
    engine_ms: float = 250.0
    """From the engine's start to the text that was shown, a moving average."""
    n_answers: int = 0
    """That it was learned from."""
    bias: float = 0.0
    """This user's own intercept: above 0: more pauses than predicted."""
    expected: Expected | None = None
    model: pauses.Model = msgspec.field(default_factory=pauses.shipped)

    def with_key(self, gap_ms: float, inserted: str) -> Rhythm:
        """After one more edit: `gap_ms` since the one before, and what it put in (nothing: a deletion)."""
        gap_ms = min(gap_ms, _LONGEST_GAP_MS) if gap_ms > 0 else 0.0
        bias = self.bias
        if self.expected is not None:
            surprise = (gap_ms >= self.expected.needed_ms) - self.expected.chance
            bias = min(max(bias * _FORGET + _RATE * surprise, -_MOST_BIAS), _MOST_BIAS)
        return msgspec.structs.replace(self, habit=self.habit.with_key(gap_ms, inserted), bias=bias, expected=None)

    def with_engine(self, engine_ms: float, *, weight: float = 0.2) -> Rhythm:
        """Learn from one answer; the first ones count more, for before them nothing is known."""
        weight = max(weight, 1.0 / (self.n_answers + 1))
        if self.n_answers >= _KNOWN_ANSWERS:
            engine_ms = min(engine_ms, _OUTLIER * self.engine_ms)  # one stall must not be believed for a minute
        return msgspec.structs.replace(self, engine_ms=self.engine_ms + weight * (engine_ms - self.engine_ms), n_answers=self.n_answers + 1)

    def with_asked(self, ask: Ask, window: Window) -> Rhythm:
        """Remember what is predicted for this ask; the next key tells whether it was right."""
        if ask.since_edit_ms is None:
            return self
        waited = max(0.0, ask.since_edit_ms)
        chance = self.model.outlasts(self.score(window), waited, self.engine_ms, self.habit.unit_ms)
        return msgspec.structs.replace(self, expected=Expected(chance, waited + self.engine_ms))

    def score(self, window: Window) -> float:
        """How much this moment looks like the beginning of a pause."""
        return self.model.score(features(self.habit, window)) + self.bias


def delay_ms(ask: Ask, window: Window, rhythm: Rhythm, settings: config.Debounce) -> float:
    """Milliseconds still to wait; what the editor has waited already counts.

    The ask goes out at the first moment at which the user will probably pause for as long as the engine needs.
    """
    if ask.trigger is Trigger.INVOKED or settings.mode == "off" or ask.since_edit_ms is None:
        return 0.0
    waited = max(0.0, ask.since_edit_ms)
    if settings.mode == "fixed":
        return max(0.0, settings.max_ms - waited)
    wanted = float(settings.min_ms)
    if kind_of(ask.inserted) not in _AT_ONCE:
        longest = max(settings.min_ms, settings.max_ms)
        at = rhythm.model.wait_ms(
            rhythm.score(window),
            waited_ms=max(waited, wanted),
            engine_ms=rhythm.engine_ms,
            longest_ms=longest,
            unit_ms=rhythm.habit.unit_ms,
            deleted=not ask.inserted,
        )
        wanted = min(at, longest)
    return max(0.0, wanted - waited)
