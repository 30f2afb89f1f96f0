"""What the parts of a decision to stop say to each other."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec


class Stop(msgspec.Struct, frozen=True):
    """Where a stream is cut, and why."""

    at: int
    """Keep `text[:at]`."""
    reason: str
    ran_on: bool = False
    """Whether the model was given time beyond a likely end and did not end by itself."""


class Line(msgspec.Struct, frozen=True):
    """A line of the answer."""

    text: str
    start: int
    end: int
    is_whole: bool
    """Whether its line end has come: until then it may grow."""

    @property
    def is_blank(self) -> bool:
        return not self.text.strip()


def lines(text: str) -> Iterator[Line]:
    """Of `text`, in order; the last one is not whole."""
    start = 0
    while True:
        end = text.find("\n", start)
        if end < 0:
            yield Line(text[start:], start, len(text), is_whole=False)
            return
        yield Line(text[start:end], start, end, is_whole=True)
        start = end + 1
