"""Lines of text that can be found again by the shape of two neighbours, or of one telling line.

Bounded by whoever adds to it.  Every line is chained to the line before it that looks alike, so that
adding one costs its lexing and finding some costs a look-up.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

from monkeycode_lsp.recall.shape import Line, lexed

TELLING = 5
"""A line of so many tokens is found by itself."""
_NOWHERE = -1


class Block:
    """Passages of text, one after the other."""

    # The mutable state is the lines (None between two passages) and for both kinds of key the latest line with it and
    # the chain of the earlier ones; it changes in `add` and `end` only.

    def __init__(self) -> None:
        self.lines: list[str | None] = []
        """As they were, without line ends."""
        self._latest: dict[int | tuple[int, int], int] = {}
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

    def pairs(self, first: Line, second: Line) -> Iterator[int]:
        """Where the second of two neighbours stands, blank lines aside; the latest first."""
        return self._walk((first.key, second.key), self._earlier_pair)

    def singles(self, line: Line) -> Iterator[int]:
        """Where a line like this one stands, if it is telling; the latest first."""
        return self._walk(line.key, self._earlier_line)

    def above(self, at: int) -> Iterator[str]:
        """The line at `at` and those above it, nearest first, without blank ones."""
        for n in range(at, -1, -1):
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
        for n in range(at + 1, len(self.lines)):
            text = self.lines[n]
            if text is None:
                return None
            if text.strip():
                return n
        return None

    def _chain(self, key: int | tuple[int, int], at: int) -> int:
        earlier = self._latest.get(key, _NOWHERE)
        self._latest[key] = at
        return earlier

    def _walk(self, key: int | tuple[int, int], earlier: array[int]) -> Iterator[int]:
        at = self._latest.get(key, _NOWHERE)
        while at != _NOWHERE:
            yield at
            at = earlier[at]
