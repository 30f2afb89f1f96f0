"""Token healing: an answer that must begin with the cut-off beginning of a token.  Pure.

A model that reads `pri` as a token of its own seldom goes on with `nt`; so the beginning is taken off the prompt,
and the answer's first tokens are drawn among those that spell it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence


class Pieces:
    """A vocabulary's tokens by their bytes; made once, never changed."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._tokens = array("i", sorted((token for token, piece in enumerate(pieces) if piece), key=pieces.__getitem__))
        self._pieces = [pieces[token] for token in self._tokens]
        self._longest = max(map(len, self._pieces), default=0)

    def fitting(self, text: bytes) -> list[int]:
        """The tokens that begin with `text` or that `text` begins with, without those that have no bytes."""
        fitting: list[int] = []
        for n_bytes in range(1, min(len(text), self._longest + 1)):
            beginning = text[:n_bytes]
            # The smallest bytes that are larger: the range holds what equals `beginning`.
            fitting += self._between(beginning, beginning + b"\0")
        return fitting + self._between(text, _behind(text))

    def _between(self, low: bytes, high: bytes | None) -> list[int]:
        start = bisect_left(self._pieces, low)
        end = len(self._pieces) if high is None else bisect_left(self._pieces, high, start)
        return self._tokens[start:end].tolist()


class Healing:
    """How far one answer has spelled what it must begin with."""

    def __init__(self, text: bytes) -> None:
        # The mutable state is what is still to be spelled; it changes in `take` only.
        self.left = text

    @property
    def done(self) -> bool:
        """Whether any token may come next."""
        return not self.left

    def take(self, piece: bytes) -> bytes:
        """The part of a drawn token's bytes that is new.  Raises `ValueError` for a token that does not fit."""
        if piece.startswith(self.left):
            fresh = piece[len(self.left) :]
            self.left = b""
            return fresh
        if not self.left.startswith(piece):
            raise ValueError(f"{piece!r} does not go on with {self.left!r}")
        self.left = self.left[len(piece) :]
        return b""


def _behind(beginning: bytes) -> bytes | None:
    """The smallest bytes above everything that starts with `beginning`; None: there are none."""
    head = beginning.rstrip(b"\xff")
    return head[:-1] + bytes([head[-1] + 1]) if head else None
