"""How long an automatic ask waits for the next key.  Arithmetic only (pure)."""

from __future__ import annotations

import msgspec

from monkeycode_lsp import config
from monkeycode_lsp.domain import Ask, Trigger, Window

_OPENERS = tuple("([{:,=.\n")


class Rhythm(msgspec.Struct, frozen=True):
    """How the user types and how fast the engine is, as moving averages."""

    gap_ms: float = 180.0
    """Between two keys of one run of typing."""
    engine_ms: float = 250.0
    """From the engine's start to the text that was shown."""

    def with_gap(self, gap_ms: float, *, longest_ms: float = 1_000.0, weight: float = 0.15) -> Rhythm:
        """Learn from one gap; longer ones are pauses and say nothing about the rhythm."""
        if not 0 < gap_ms <= longest_ms:
            return self
        return Rhythm(gap_ms=self.gap_ms + weight * (gap_ms - self.gap_ms), engine_ms=self.engine_ms)

    def with_engine(self, engine_ms: float, *, weight: float = 0.2) -> Rhythm:
        """Learn from one answer."""
        return Rhythm(gap_ms=self.gap_ms, engine_ms=self.engine_ms + weight * (engine_ms - self.engine_ms))


def delay_ms(ask: Ask, window: Window, rhythm: Rhythm, settings: config.Debounce) -> float:
    """Milliseconds still to wait; what the editor has waited already counts.

    A slow engine is asked a little later (a needless ask costs it more), a fast one at once;
    where a run of typing has just ended (a new line, after an opener) the wait is short.
    """
    if ask.trigger is Trigger.INVOKED or settings.mode == "off" or ask.since_edit_ms is None:
        return 0.0
    if settings.mode == "fixed":
        wanted = float(settings.max_ms)
    else:
        # Past 1 the wait outlasts a run of typing: a slow engine is asked once after it, not at every key.
        wanted = rhythm.gap_ms * min(1.3, rhythm.engine_ms / 330.0)
        if window.line_before.strip() == "" or window.prefix.endswith(_OPENERS):
            wanted *= 0.3
        wanted = min(max(wanted, settings.min_ms), settings.max_ms)
    return max(0.0, wanted - ask.since_edit_ms)
