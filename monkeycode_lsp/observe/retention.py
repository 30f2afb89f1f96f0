"""Is what was taken still there some time later?  Compares lines; remembers text only as long as the answer is open."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec

from monkeycode_lsp.observe.fates import Place

AFTER_S = (30, 120)
"""When it is looked at."""
_REST_S = 1.0
"""Between two looks at a document: they are not free."""
_AROUND = 200
"""Lines up and down that the text may have moved."""
_MOST = 32


class Kept(msgspec.Struct, frozen=True):
    """So much of what an ask's suggestion gave was there after so many seconds."""

    ask_id: int
    after_s: int
    share: float


class _Watched(msgspec.Struct):
    """Text that was taken.  The mutable state is how much of it was there at the last look, and what was told."""

    ask_id: int
    uri: str
    place: Place
    pieces: tuple[str, ...]
    """Its lines without indentation; the first and the last may be parts of a line."""
    since: float
    looked: float
    share: float = 1.0
    n_told: int = 0


class Retention:
    """Of one window's documents."""

    # The mutable state is what is watched; it changes in the public methods only.

    def __init__(self) -> None:
        self._watched: deque[_Watched] = deque(maxlen=_MOST)

    def watch(self, ask_id: int, uri: str, place: Place, text: str, now: float) -> None:
        """`text` was taken at that place."""
        pieces = tuple(piece for line in text.split("\n") if (piece := line.strip()))
        if pieces:
            self._watched.append(_Watched(ask_id, uri, place, pieces, now, now))

    def edited(self, uri: str, lines: Sequence[str], now: float) -> None:
        """The document has these lines now."""
        for one in self._watched:
            if one.uri == uri and now - one.looked >= _REST_S:
                one.looked = now
                one.share = _share(one, lines)

    def due(self, now: float) -> list[Kept]:
        """What can be told by now; a document that nobody edits keeps what it has."""
        told: list[Kept] = []
        for one in self._watched:
            while one.n_told < len(AFTER_S) and now - one.since >= AFTER_S[one.n_told]:
                told.append(Kept(one.ask_id, AFTER_S[one.n_told], one.share))
                one.n_told += 1
        while self._watched and self._watched[0].n_told == len(AFTER_S):
            self._watched.popleft()
        return told

    def closed(self, uri: str) -> None:
        """Nothing more will be seen of the document."""
        for one in [one for one in self._watched if one.uri == uri]:
            self._watched.remove(one)


def _share(one: _Watched, lines: Sequence[str]) -> float:
    shifted = one.place.line + len(lines) - one.place.n_lines
    first, last = sorted((one.place.line, shifted))
    near = [line.strip() for line in lines[max(0, first - _AROUND) : max(0, last + len(one.pieces) + _AROUND)]]
    whole = set(near)
    n_there = 0
    for number, piece in enumerate(one.pieces):
        is_part = number in (0, len(one.pieces) - 1)
        if piece in whole or (is_part and any(piece in line for line in near)):
            n_there += len(piece)
    return n_there / sum(map(len, one.pieces))
