"""Tokens of lines as the engine's tokenizer counted them; what it has not counted yet is estimated (pure).

Holds no text but that of the lines that wait to be counted: a line that is known is known by its hash.
"""

from __future__ import annotations

from collections.abc import Sequence

from monkeycode_lsp.context import tokens
from monkeycode_lsp.context.tokens import Rates

LONGEST = 1_000
"""Characters of a line that is counted; longer ones are estimated."""
_MOST_WAITING = 2_048
_MOST_KNOWN = 65_536


class LineCounts:
    """Of one model."""

    # The mutable state is the counts by the line's hash, the oldest first, and the lines that wait; `learn` fills the first, a
    # line that is asked for and not known joins the second.

    def __init__(self, *, most_known: int = _MOST_KNOWN) -> None:
        self._known: dict[int, int] = {}
        self._waiting: dict[str, None] = {}
        self._most_known = most_known

    def at(self, rates: Rates) -> _At:
        """A `tokens.Counter` that estimates by these rates what is not known."""
        return _At(self, rates)

    def known(self, line: str) -> int | None:
        """Its tokens; None: it has not been counted, and waits for it now unless it is too long."""
        count = self._known.get(hash(line))
        if count is None and len(line) <= LONGEST and len(self._waiting) < _MOST_WAITING:
            self._waiting[line] = None
        return count

    @property
    def waits(self) -> bool:
        """Whether any line waits to be counted."""
        return bool(self._waiting)

    def take_waiting(self, most: int) -> list[str]:
        """Lines to be counted; they wait no longer."""
        lines = list(self._waiting)[:most]
        for line in lines:
            del self._waiting[line]
        return lines

    def learn(self, lines: Sequence[str], counts: Sequence[int]) -> None:
        """They were counted."""
        self._known.update(zip(map(hash, lines), counts, strict=True))
        for oldest in list(self._known)[: max(0, len(self._known) - self._most_known)]:
            del self._known[oldest]


class _At:
    """See `tokens.Counter`."""

    def __init__(self, counts: LineCounts, rates: Rates) -> None:
        self._counts = counts
        self._rates = rates

    def line(self, text: str) -> float:
        """See `tokens.Counter`."""
        known = self._counts.known(text)
        return tokens.estimate(text, self._rates) if known is None else known

    def part(self, text: str) -> float:
        """See `tokens.Counter`."""
        return tokens.estimate(text, self._rates)
