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


class Told(msgspec.Struct, frozen=True):
    """What became of one suggestion, or of a part of it so far."""

    ask_id: int
    fate: Fate
    n_taken: int = 0
    """Characters of it that stand in the text."""
    share: float = 0.0


class _Followed(msgspec.Struct, frozen=True):
    """A suggestion on the screen."""

    ask_id: int
    """Of the ask that showed it first."""
    last_id: int
    """Of the one that showed the rest of it last."""
    line: int
    n_lines: int
    """Of the document."""
    before: str
    """The line up to the place."""
    text: str
    n_there: int = 0
    """Characters of it that stand in the text."""
    n_at_once: int = 0
    """Most of them that one edit put in."""

    def of(self, lines: Sequence[str]) -> int | None:
        """Characters of it that stand in these lines now; None: the place is not there any more."""
        found = None
        for at in {self.line, self.line + len(lines) - self.n_lines}:
            if not 0 <= at < len(lines) or not lines[at].startswith(self.before):
                continue
            said = lf("".join(lines[at : at + self.text.count("\n") + 1]))[len(self.before) :]
            found = max(found or 0, _common(said, self.text))
        return found


class Fates:
    """Of one window's documents."""

    # The mutable state is what is followed in each document; it changes in the public methods only.

    def __init__(self) -> None:
        self._followed: OrderedDict[str, _Followed] = OrderedDict()

    def shown(self, ask_id: int, snapshot: Snapshot, text: str) -> list[Told]:
        """The ask is answered with `text`: what that says about it and about what stood there before."""
        uri = snapshot.uri
        before = self._followed.pop(uri, None)
        now = _Followed(ask_id, ask_id, snapshot.line, len(snapshot.lines), snapshot.line_before, text)
        told: list[Told] = []
        if before is not None:
            rest = _rest(before, snapshot, text)
            if rest is not None:
                now = msgspec.structs.replace(rest, last_id=ask_id)
                told.append(Told(ask_id, Fate.CONTINUED))
            else:
                told.append(_left(before))
        if before is None or now.ask_id == ask_id:
            told.append(Told(ask_id, Fate.OPEN))
        self._followed[uri] = now
        if len(self._followed) > _MOST_DOCUMENTS:
            told.append(_left(self._followed.popitem(last=False)[1]))
        return told

    def edited(self, uri: str, lines: Sequence[str]) -> list[Told]:
        """The document has these lines now."""
        followed = self._followed.get(uri)
        if followed is None:
            return []
        n = followed.of(lines)
        if n is None:
            del self._followed[uri]
            return [_left(followed)]
        n_new = n - followed.n_there
        now = msgspec.structs.replace(followed, n_there=n, n_at_once=max(followed.n_at_once, n_new))
        if n == len(now.text):
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
        return [_left(followed) if followed.n_there >= _PART else Told(followed.ask_id, Fate.REJECTED)]

    def closed(self, uri: str) -> list[Told]:
        """Nothing more will be seen of the document."""
        followed = self._followed.pop(uri, None)
        return [] if followed is None else [_left(followed)]

    def _uri(self, ask_id: int) -> str | None:
        return next((uri for uri, known in self._followed.items() if ask_id in (known.ask_id, known.last_id)), None)


def _told(followed: _Followed, fate: Fate) -> Told:
    return Told(followed.ask_id, fate, followed.n_there, followed.n_there / len(followed.text))


def _left(followed: _Followed) -> Told:
    """It is not on the screen any more, and not all of it was taken."""
    return _told(followed, Fate.PARTIAL) if followed.n_there >= _PART else Told(followed.ask_id, Fate.IGNORED)


def _rest(before: _Followed, snapshot: Snapshot, text: str) -> _Followed | None:
    """What is followed, if `text` at the cursor is what is left of it; it may have grown."""
    n = before.of(snapshot.lines)
    if n is None:
        return None
    left = before.text[n:]
    if not left or not (left.startswith(text) or text.startswith(left)):
        return None
    typed = before.text[:n]
    here = before.before + typed if "\n" not in typed else typed[typed.rfind("\n") + 1 :]
    if snapshot.line_before != here:
        return None
    return msgspec.structs.replace(before, text=typed + max(left, text, key=len), n_there=n)


def _common(said: str, text: str) -> int:
    """How many characters both begin with."""
    return next((at for at, (one, other) in enumerate(zip(said, text, strict=False)) if one != other), min(len(said), len(text)))
