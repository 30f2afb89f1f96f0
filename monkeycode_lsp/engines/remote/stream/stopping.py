"""Stop strings applied on our side, over the borders of chunks.  Pure.

Servers take only a few stop strings, and some cut a token too late.  Text that may be the beginning
of a stop string is held back until it is certain.
"""

from __future__ import annotations

from collections.abc import Iterable


class StopStrings:
    """Lets text through up to the first stop string.

    The mutable state is the text held back; it changes in `feed` and `rest` only.
    """

    def __init__(self, stops: Iterable[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._first = frozenset(stop[0] for stop in self._stops)
        self._longest = max(map(len, self._stops), default=0)
        self._held = ""

    def feed(self, text: str) -> tuple[str, bool]:
        """What may be shown now, and whether a stop string came (then nothing more may be fed)."""
        if not self._held and self._first.isdisjoint(text):
            return text, False
        text = self._held + text
        self._held = ""
        found = [at for at in map(text.find, self._stops) if at >= 0]
        if found:
            return text[: min(found)], True
        cut = self._undecided(text)
        self._held = text[cut:]
        return text[:cut], False

    def rest(self) -> str:
        """What was held back, once nothing more can come."""
        held, self._held = self._held, ""
        return held

    def _undecided(self, text: str) -> int:
        """Where the first possible beginning of a stop string starts at the end of `text`."""
        for at in range(max(0, len(text) - self._longest + 1), len(text)):
            if text[at] in self._first and any(stop.startswith(text[at:]) for stop in self._stops):
                return at
        return len(text)
