"""What was shown where, and what became of it: what nobody wants at a place is not shown there again.

A place is the text around the cursor.  What is left of a suggestion after some of it was typed is the
same suggestion, shown where it began.  A showing ends when the user goes elsewhere or takes back what led
there; what stands there afterwards is another one.  Invariant: one showing counts once at most, and what
was accepted counts as never shown.
"""

from __future__ import annotations

import enum
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec

from monkeycode_lsp.domain import Snapshot, Window
from monkeycode_lsp.recall import agreement
from monkeycode_lsp.text import lf

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

MOST_PLACES = 512
MOST_DOCUMENTS = 64
_BEFORE = 200
"""Characters before the cursor that make up a place."""
_AFTER = agreement.ENOUGH_AFTER
_ENOUGH = 100
"""Of those before the cursor, so many must agree: two places of one suggestion are some letters apart."""
_TELLING = 12
_AT_LEAST = 40
"""Characters of the text, and of what is before it: quick to look for, and mostly enough to tell two places apart."""
_A_KEY = 1
"""What comes letter by letter is taken back letter by letter, which says nothing."""
_TYPO = 2
"""So many letters before the place may be taken back and typed again as a correction."""


class _Origin(msgspec.Struct, frozen=True):
    """One suggestion at the place where it was shown first."""

    window: Window
    text: str
    begins: str
    """What every form of the text holds."""
    near: str
    """The end of what is before the place.  Looking for these two is quick, and mostly enough to tell two origins apart."""

    @classmethod
    def at(cls, window: Window, text: str) -> _Origin:
        begins = text.lstrip()[:_TELLING].partition("\n")[0]
        return cls(window, text, begins, window.prefix[-_AT_LEAST:])


class _Verdict(msgspec.Struct, frozen=True):
    """What became of the showings of one suggestion at one place."""

    uri: str
    n_ignored: int = 0
    is_rejected: bool = False
    is_unwanted: bool = False
    """So often, or so clearly, that it is not shown there again."""


class _Row(msgspec.Struct, frozen=True):
    """The line in which a suggestion was shown first.  Edits above move it, those below move its distance from the end."""

    number: int
    n_lines: int
    before: str
    """The line up to the place."""

    def stands(self, lines: Sequence[str]) -> bool:
        """Whether what led to the place is there, but for a few letters."""
        kept = self.before[: max(1, len(self.before) - _TYPO)]
        return len(lines) >= self.n_lines and any(lines[at].startswith(kept) for at in self._places(lines))

    def holds(self, lines: Sequence[str], text: str) -> bool:
        """Whether `text` stands at the place."""
        n = text.count("\n") + 1
        return any(lf("".join(lines[at : at + n])).startswith(self.before + text) for at in self._places(lines))

    def _places(self, lines: Sequence[str]) -> list[int]:
        return [at for at in (self.number, self.number + len(lines) - self.n_lines) if 0 <= at < len(lines)]


class _State(enum.Enum):
    """What is known of a showing before the next ask in its document."""

    OPEN = enum.auto()
    """It is on the screen, as far as can be seen."""
    ENDED = enum.auto()
    """The user went elsewhere, or took back what led there."""
    COUNTED = enum.auto()
    """He came back; it was not shown again yet."""
    TAKEN = enum.auto()
    """All of it stood in the text; if that was undone, it was not shown again yet."""


class _Standing(msgspec.Struct, frozen=True):
    """What is on the screen: a part of what was shown at its origin."""

    row: _Row
    origin: _Origin
    base: _Origin
    """From here on it is followed: text that is cut before a closer now goes on behind it."""
    here: Window
    text: str
    """What is left of it here."""
    state: _State = _State.OPEN


class _Taken(msgspec.Struct, frozen=True):
    """What was accepted last, as long as nothing else was done."""

    standing: _Standing
    is_reported: bool


class Showings:
    """Forgets the oldest places first."""

    # The mutable state is the verdicts by origin, the document of the last ask and, by document, what is on the screen
    # and what was accepted last; it changes in the public methods (not in `tired`, which only makes its answer young
    # again) and in what they call.

    def __init__(self, most: int) -> None:
        self._most = most
        self._verdicts: OrderedDict[_Origin, _Verdict] = OrderedDict()
        self._standing: OrderedDict[str, _Standing] = OrderedDict()
        self._taken: OrderedDict[str, _Taken] = OrderedDict()
        self._document = ""

    def shown(self, snapshot: Snapshot, now: Window, text: str) -> None:
        """Note that `text` is on the screen at `now`, the window at the snapshot's cursor."""
        if not self._most or not text:
            return
        uri, here = snapshot.uri, _place(now)
        before = self._standing.get(uri)
        if before is not None and before.here == here and before.text.startswith(text):
            self._standing[uri] = msgspec.structs.replace(before, state=_State.OPEN)
            return
        row = _Row(snapshot.line, len(snapshot.lines), snapshot.line_before)
        origin = base = _Origin.at(here, text)
        if before is not None and before.here == here and text.startswith(before.text):
            # It was still being made.
            row, origin, base = before.row, _grown(before.origin, before.text, text), _grown(before.base, before.text, text)
        _keep(self._standing, uri, _Standing(row, origin, base, here, text), MOST_DOCUMENTS)

    def edited(self, uri: str, lines: Sequence[str]) -> None:
        """Look at the document's lines after an edit: until the next ask, what led to the place may go and come again."""
        standing = self._standing.get(uri)
        if standing is None or standing.state is _State.TAKEN:
            return
        if standing.row.holds(lines, standing.origin.text):
            self._forgive(standing.origin)
            self._standing[uri] = msgspec.structs.replace(standing, state=_State.TAKEN)
        elif not standing.row.stands(lines):
            self._end(uri)

    def saw(self, uri: str, now: Window) -> None:
        """Judge what was on the screen by the text as it is now, before anything else is shown."""
        if uri != self._document:
            self._end(self._document)
            self._document = uri
        self._see_undo(uri, now)
        standing = self._standing.pop(uri, None)
        if standing is None:
            return
        follows, left = _followed(standing, now)
        if left:
            state = standing.state
            if state is _State.ENDED:
                self._judge(uri, standing)
                state = _State.COUNTED
            here = _Standing(standing.row, standing.origin, follows, _place(now), left, state)
            _keep(self._standing, uri, here, MOST_DOCUMENTS)
        elif left is not None or agreement.taken(standing.here, standing.text, now, enough=_ENOUGH):
            self._forgive(standing.origin)
            if len(standing.text) > _A_KEY:
                _keep(self._taken, uri, _Taken(standing, is_reported=False), MOST_DOCUMENTS)
        elif standing.state in {_State.OPEN, _State.ENDED}:
            self._judge(uri, standing)

    def accepted(self, uri: str) -> None:
        """The editor says that the user took what was on the screen."""
        taken = self._taken.get(uri)
        if taken is not None and not taken.is_reported:
            self._taken[uri] = _Taken(taken.standing, is_reported=True)  # the text has told already
            return
        standing = self._standing.pop(uri, None)
        if standing is not None:
            self._forgive(standing.origin)
            _keep(self._taken, uri, _Taken(standing, is_reported=True), MOST_DOCUMENTS)

    def unseen(self, uri: str) -> None:
        """What was to be shown last was not shown."""
        self._standing.pop(uri, None)

    def rejected(self, uri: str) -> None:
        """The user said no to what is on the screen."""
        standing = self._standing.pop(uri, None)
        if standing is not None:
            self._judge(uri, standing, is_rejected=True)

    def tired(self, now: Window, text: str) -> bool:
        """Whether `text` was shown here so often, and never taken, that it should not be shown again."""
        unwanted = [origin for origin, verdict in self._verdicts.items() if verdict.is_unwanted]  # few, and this is asked at every key
        origin = _known(_Origin.at(_place(now), text), unwanted) if unwanted else None
        if origin is None:
            return False
        self._verdicts.move_to_end(origin)
        return True

    def forget(self, uri: str = "") -> None:
        """Forget one document, or all of them, with their places."""
        for origin in [origin for origin, verdict in self._verdicts.items() if uri in ("", verdict.uri)]:
            del self._verdicts[origin]
        for known in (self._standing, self._taken):
            for other in [other for other in known if uri in ("", other)]:
                del known[other]

    def _end(self, uri: str) -> None:
        standing = self._standing.get(uri)
        if standing is not None and standing.state is _State.OPEN:
            self._standing[uri] = msgspec.structs.replace(standing, state=_State.ENDED)

    def _forgive(self, shown: _Origin) -> None:
        for origin in list(_alike(shown, self._verdicts)):
            del self._verdicts[origin]

    def _see_undo(self, uri: str, now: Window) -> None:
        taken = self._taken.get(uri)
        if taken is None:
            return
        here, text = taken.standing.here, taken.standing.text
        if agreement.between(here, now, most=len(text), enough=_ENOUGH) == text:
            return
        del self._taken[uri]
        if _place(now) == here:
            self._standing.pop(uri, None)  # what was shown after it is gone with it
            self._judge(uri, taken.standing, is_rejected=True)

    def _judge(self, uri: str, standing: _Standing, *, is_rejected: bool = False) -> None:
        origin = _known(standing.origin, self._verdicts) or standing.origin
        verdict = self._verdicts.get(origin, _Verdict(uri))
        n_ignored, is_rejected = verdict.n_ignored + (not is_rejected), verdict.is_rejected or is_rejected
        verdict = _Verdict(uri, n_ignored, is_rejected, is_unwanted=is_rejected or n_ignored >= self._most)
        _keep(self._verdicts, origin, verdict, MOST_PLACES)


def _followed(standing: _Standing, now: Window) -> tuple[_Origin, str | None]:
    """From where it is followed now, and what of it is to come here; None: something else was done."""
    origin = standing.origin
    for base in (standing.base, origin):
        left = _rest(base, now)
        if left is not None:
            goes_on = bool(left.text) and base.text.endswith(left.text)
            return _Origin.at(_place(now), left.text) if goes_on else base, left.text
    if standing.state is _State.OPEN and len(standing.text) < len(origin.text):
        # He typed along, and corrects a letter too many.
        back = agreement.between(_place(now), origin.window, most=_TYPO, enough=_ENOUGH)
        if back and "\n" not in back and agreement.same_suffix(_place(now), origin.window):
            return _Origin.at(_place(now), back + origin.text), back + origin.text
    return origin, None


def _known(shown: _Origin, among: Iterable[_Origin]) -> _Origin | None:
    """The origin of what `shown` is a part of, or is all of."""
    return next(_alike(shown, among), None)


def _alike(shown: _Origin, among: Iterable[_Origin]) -> Iterator[_Origin]:
    """All such origins, itself first and then the youngest."""
    text, begins, near, before = shown.text, shown.begins, shown.near, shown.window.prefix
    alike = [
        origin
        for origin in among
        if (begins in origin.text or origin.begins in text) and (origin.near in before or near in origin.window.prefix)
    ]
    if shown in alike:
        yield shown
    yield from (origin for origin in reversed(alike) if origin != shown and _is_same(origin, shown))


def _is_same(origin: _Origin, shown: _Origin) -> bool:
    if origin.window.path != shown.window.path or origin.window.language != shown.window.language:
        return False
    left = _rest(origin, shown.window)
    if left is not None:
        return left.text == shown.text
    # It was shown first a little later: in the middle of a word whose beginning is here, or with most of it still to come.
    left = _rest(shown, origin.window)
    if left is None or left.text != origin.text:
        return False
    typed = shown.text[: left.n_typed]
    return (typed + origin.text[0]).replace("_", "a").isalnum() or ("\n" not in typed and len(typed) * 2 <= len(origin.text))


def _rest(origin: _Origin, now: Window) -> agreement.Rest | None:
    return agreement.rest(origin.window, origin.text, now, whole=True, enough=_ENOUGH)


def _grown(origin: _Origin, before: str, text: str) -> _Origin:
    """With the text that has come since `before` was what is left of it."""
    return _Origin.at(origin.window, origin.text + text[len(before) :]) if origin.text.endswith(before) else origin


def _place(now: Window) -> Window:
    """The text around the cursor that makes up a place."""
    return msgspec.structs.replace(
        now,
        prefix=now.prefix[-_BEFORE:],
        suffix=now.suffix[:_AFTER],
        whole_prefix=now.whole_prefix and len(now.prefix) <= _BEFORE,
        whole_suffix=now.whole_suffix and len(now.suffix) <= _AFTER,
    )


def _keep(known: OrderedDict[_Key, _Value], key: _Key, value: _Value, most: int) -> None:
    """As the newest; the oldest makes room."""
    known[key] = value
    known.move_to_end(key)
    if len(known) > most:
        known.popitem(last=False)
