"""What becomes of a suggestion that was shown: the one place where that is decided (pure, but for what it remembers).

What the editor says counts first; what it does not say is read off the text.  A suggestion is followed from the place
where it was shown first: the rest of it, shown again after some of it was typed, is the same one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import msgspec

from monkeycode_lsp.domain import Fate, Snapshot
from monkeycode_lsp.text import lf

_MOST_DOCUMENTS = 64
_A_KEY = 2
"""Characters that one edit puts in when a key is pressed, a closing bracket included; what puts in more is no typing."""
_PART = 3
"""So much of it has to be typed until it is a part that was wanted, and no accident."""


class Place(msgspec.Struct, frozen=True):
    """Where in a document a suggestion was shown first.  Edits above move it, those below move its distance from the end."""

    line: int
    n_lines: int
    before: str
    """The line up to it."""

    def among(self, lines: Sequence[str]) -> list[int]:
        """The rows where it may be now."""
        rows = {self.line, self.line + len(lines) - self.n_lines}
        return [at for at in sorted(rows) if 0 <= at < len(lines) and lines[at].startswith(self.before)]


class Told(msgspec.Struct, frozen=True):
    """What became of one suggestion."""

    ask_id: int
    """Of the ask that showed it first; but of the later one itself where the fate is CONTINUED."""
    fate: Fate
    uri: str = ""
    place: Place | None = None
    taken: str = ""
    """What of it stands in the text."""
    share: float = 0.0


class _Followed(msgspec.Struct, frozen=True):
    """A suggestion on the screen."""

    ask_id: int
    """Of the ask that showed it first."""
    last_id: int
    """Of the one that showed the rest of it last."""
    uri: str
    place: Place
    text: str
    n_around: int
    """Characters of the lines where it was to stand, at that time …"""
    n_same: int
    """… and so many of them are those that it begins with."""
    row: str
    """The line of the place as it was seen last: an edit elsewhere leaves it as it is."""
    n_there: int = 0
    """Characters of it that stand in the text."""
    n_at_once: int = 0
    """Most of them that one edit put in."""
    n_grown: int = 0
    """Lines that the document has gained since."""

    @classmethod
    def at(cls, ask_id: int, snapshot: Snapshot, text: str) -> _Followed:
        place = Place(snapshot.line, len(snapshot.lines), snapshot.line_before)
        around = _after(snapshot.lines, snapshot.line, place, text)
        row = snapshot.lines[snapshot.line]
        return cls(ask_id, ask_id, snapshot.uri, place, text, len(around), _common(around, text), row)

    def seen(self, lines: Sequence[str]) -> _Followed | None:
        """After an edit; None: the place is not there any more."""
        rows = [(lines[at] == self.row, self._standing(lines, at), at) for at in self.place.among(lines)]
        if not rows:
            return None
        _, n, at = max(rows)
        place = msgspec.structs.replace(self.place, line=at, n_lines=len(lines))
        at_once = max(self.n_at_once, n - self.n_there)
        return msgspec.structs.replace(self, place=place, row=lines[at], n_there=n, n_at_once=at_once, n_grown=self._grown(lines))

    def _standing(self, lines: Sequence[str], at: int) -> int:
        around = _after(lines, at, self.place, self.text)
        n = _common(around, self.text)
        if not self.n_same:
            return n
        # It begins with what stood there already: a closing bracket, or a line end.
        if "\n" in self.text:
            return n if self._grown(lines) >= self.text.count("\n") else 0
        return min(n, max(0, len(around) - self.n_around))

    def _grown(self, lines: Sequence[str]) -> int:
        """Lines that the document has more than when it was shown."""
        return self.n_grown + len(lines) - self.place.n_lines


class Fates:
    """Of one window's documents."""

    # The mutable state is what is followed in each document; it changes in the public methods only.

    def __init__(self) -> None:
        self._followed: OrderedDict[str, _Followed] = OrderedDict()

    def shown(self, ask_id: int, snapshot: Snapshot, text: str) -> list[Told]:
        """The ask is answered with `text`: what that says about it and about what stood there before."""
        before = self._followed.pop(snapshot.uri, None)
        now = _Followed.at(ask_id, snapshot, text)
        told: list[Told] = []
        rest = _rest(before, snapshot, text) if before is not None else None
        if before is not None and ask_id == before.last_id:  # it answers with something better after all
            now = msgspec.structs.replace(now, ask_id=before.ask_id)
        elif rest is not None:
            now = msgspec.structs.replace(rest, last_id=ask_id)
            told.append(Told(ask_id, Fate.CONTINUED))
        else:
            told = [_left(before)] if before is not None else []
            told.append(Told(ask_id, Fate.OPEN))
        self._followed[snapshot.uri] = now
        if len(self._followed) > _MOST_DOCUMENTS:
            told.append(_left(self._followed.popitem(last=False)[1]))
        return told

    def edited(self, uri: str, lines: Sequence[str]) -> list[Told]:
        """The document has these lines now."""
        followed = self._followed.get(uri)
        if followed is None:
            return []
        now = followed.seen(lines)
        if now is None:
            del self._followed[uri]
            return [_left(followed)]
        if now.n_there == len(now.text):
            del self._followed[uri]
            # The last letters are often the editor's own closing brackets.
            return [_told(now, Fate.ACCEPTED if now.n_at_once > _A_KEY else Fate.TYPED)]
        self._followed[uri] = now
        return []

    def unseen(self, ask_id: int) -> None:
        """What that ask was answered with never came to the screen."""
        uri = self._uri(ask_id)
        if uri is None:
            return
        followed = self._followed[uri]
        if followed.ask_id == ask_id:
            del self._followed[uri]

    def accepted(self, ask_id: int) -> list[Told]:
        """The editor says that it was taken.  Some say so before the text has it."""
        uri = self._uri(ask_id)
        if uri is None:
            return []
        followed = self._followed.pop(uri)
        return [_told(msgspec.structs.replace(followed, n_there=len(followed.text)), Fate.ACCEPTED)]

    def rejected(self, ask_id: int) -> list[Told]:
        """The editor says that the user does not want it."""
        uri = self._uri(ask_id)
        if uri is None or self._followed[uri].last_id != ask_id:
            return []
        followed = self._followed.pop(uri)
        return [_left(followed) if followed.n_there >= _PART else Told(followed.ask_id, Fate.REJECTED, followed.uri)]

    def closed(self, uri: str) -> list[Told]:
        """Nothing more will be seen of the document."""
        followed = self._followed.pop(uri, None)
        return [] if followed is None else [_left(followed)]

    def _uri(self, ask_id: int) -> str | None:
        return next((uri for uri, known in self._followed.items() if ask_id in (known.ask_id, known.last_id)), None)


def _told(followed: _Followed, fate: Fate) -> Told:
    n = followed.n_there
    return Told(followed.ask_id, fate, followed.uri, followed.place, followed.text[:n], n / max(1, len(followed.text)))


def _left(followed: _Followed) -> Told:
    """It is not on the screen any more, and not all of it was taken."""
    return _told(followed, Fate.PARTIAL) if followed.n_there >= _PART else Told(followed.ask_id, Fate.IGNORED, followed.uri)


def _rest(before: _Followed, snapshot: Snapshot, text: str) -> _Followed | None:
    """What is followed, if `text` at the cursor is what is left of it; it may have grown."""
    seen = before.seen(snapshot.lines)
    if seen is None:
        return None
    n = seen.n_there
    left = before.text[n:]
    if not left or not (left.startswith(text) or text.startswith(left)):
        return None
    typed = before.text[:n]
    here = before.place.before + typed if "\n" not in typed else typed[typed.rfind("\n") + 1 :]
    if snapshot.line_before != here:
        return None
    return msgspec.structs.replace(seen, text=typed + max(left, text, key=len))


def _common(said: str, text: str) -> int:
    """How many characters both begin with."""
    return next((at for at, (one, other) in enumerate(zip(said, text, strict=False)) if one != other), min(len(said), len(text)))


def _after(lines: Sequence[str], at: int, place: Place, text: str) -> str:
    """What stands from the place on, as far as `text` would reach."""
    return lf("".join(lines[at : at + text.count("\n") + 1]))[len(place.before) :]
