"""Lines of text that can be found again by the shape of two neighbours, or of one telling line.

Bounded by whoever adds to it.  Every line is chained to the line before it that looks alike, so that
adding one costs its lexing and finding some costs a look-up.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator
from itertools import count

from monkeycode_lsp.recall.shape import lexed

TELLING = 5
"""A line of so many tokens is found by itself."""
_REACH = 40
"""No farther are lines looked for that are not blank."""
_NOWHERE = -1
Key = int | tuple[int, int]
"""Of a line, or of two neighbours, blank lines aside."""


class Block:
    """Passages of text, one after the other."""

    # The mutable state is the lines (None between two passages) and for both kinds of key the latest line with it and
    # the chain of the earlier ones; it changes in `add` and `end` only.

    def __init__(self) -> None:
        self.lines: list[str | None] = []
        """As they were, without line ends."""
        self._latest: dict[Key, int] = {}
        self._earlier_pair = array("l")
        self._earlier_line = array("l")
        self._last_key: int | None = None

    def add(self, lines: Iterable[str]) -> None:
        """Go on with the passage.  A line that is too long to be code ends it."""
        for text in lines:
            line = lexed(text)
            if line is None and text.strip():
                self.end()
                continue
            at = len(self.lines)
            self.lines.append(text)
            earlier_pair = earlier_line = _NOWHERE
            if line is not None:
                if self._last_key is not None:
                    earlier_pair = self._chain((self._last_key, line.key), at)
                if len(line.shape) >= TELLING:
                    earlier_line = self._chain(line.key, at)
                self._last_key = line.key
            self._earlier_pair.append(earlier_pair)
            self._earlier_line.append(earlier_line)

    def end(self) -> None:
        """What comes next does not follow what was there."""
        self.lines.append(None)
        self._earlier_pair.append(_NOWHERE)
        self._earlier_line.append(_NOWHERE)
        self._last_key = None

    def has_none(self, keys: Collection[Key]) -> bool:
        """Whether nothing is to be found by any of these keys."""
        return self._latest.keys().isdisjoint(keys)

    def places(self, key: Key, most: int) -> Iterator[int]:
        """Where such a line stands, or the second one of such a pair; the latest first."""
        earlier = self._earlier_pair if isinstance(key, tuple) else self._earlier_line
        at = self._latest.get(key, _NOWHERE)
        while at != _NOWHERE and most:
            yield at
            at = earlier[at]
            most -= 1

    def above(self, at: int) -> Iterator[str]:
        """The line at `at` and those above it, nearest first, without blank ones."""
        for n in range(at, max(-1, at - _REACH), -1):
            text = self.lines[n]
            if text is None:
                return
            if text.strip():
                yield text

    def below(self, at: int, most: int) -> list[str]:
        """The lines after `at`, to the end of the passage or `most`."""
        found: list[str] = []
        for text in self.lines[at + 1 : at + 1 + most]:
            if text is None:
                break
            found.append(text)
        return found

    def next_line(self, at: int) -> int | None:
        """The first line after `at` that is not blank; None at the end of the passage."""
        for text, n in zip(self.lines[at + 1 : at + 1 + _REACH], count(at + 1), strict=False):
            if text is None:
                return None
            if text.strip():
                return n
        return None

    def _chain(self, key: Key, at: int) -> int:
        earlier = self._latest.get(key, _NOWHERE)
        self._latest[key] = at
        return earlier
