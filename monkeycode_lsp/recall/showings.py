"""What was shown where, and what became of it: what nobody wants at a place is not shown there again.

A place is the text around the cursor.  What is left of a suggestion after some of it was typed is the
same suggestion, shown where it began.  Invariant: one showing counts once at most, and what was
accepted counts as never shown.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from monkeycode_lsp.domain import Window
from monkeycode_lsp.recall import agreement

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


class _Origin(msgspec.Struct, frozen=True):
    """One suggestion at the place where it was shown first."""

    window: Window
    text: str


class _Verdict(msgspec.Struct, frozen=True):
    """What became of the showings of one suggestion at one place."""

    uri: str
    n_contradicted: int = 0
    was_left: bool = False
    """The cursor went away, and nothing was changed: however often, that counts once."""
    is_rejected: bool = False


class _Standing(msgspec.Struct, frozen=True):
    """What is on the screen: a part of what was shown at its origin."""

    origin: _Origin
    base: _Origin
    """From here on it is followed: text that is cut before a closer now goes on behind it."""
    here: Window
    text: str
    """What is left of it here."""


class _Taken(msgspec.Struct, frozen=True):
    """What was accepted last, as long as nothing else was done."""

    standing: _Standing
    is_reported: bool


class Showings:
    """Forgets the oldest places first."""

    # The mutable state is the verdicts by origin and, by document, what is on the screen and what was accepted last;
    # it changes in the public methods (not in `tired`, which only makes its answer young again) and in what they call.

    def __init__(self, most: int) -> None:
        self._most = most
        self._verdicts: OrderedDict[_Origin, _Verdict] = OrderedDict()
        self._standing: OrderedDict[str, _Standing] = OrderedDict()
        self._taken: OrderedDict[str, _Taken] = OrderedDict()

    def shown(self, uri: str, now: Window, text: str) -> None:
        """Note that `text` is on the screen at `now`."""
        if not self._most or not text:
            return
        here, before = _place(now), self._standing.get(uri)
        if before is not None and before.here == here and before.text.startswith(text):
            return
        origin = base = _Origin(here, text)
        if before is not None and before.here == here and text.startswith(before.text):
            # It was still being made.
            origin, base = _grown(before.origin, before.text, text), _grown(before.base, before.text, text)
        _keep(self._standing, uri, _Standing(origin, base, here, text), MOST_DOCUMENTS)

    def saw(self, uri: str, now: Window) -> None:
        """Judge what was on the screen by the text as it is now, before anything else is shown."""
        self._see_undo(uri, now)
        standing = self._standing.pop(uri, None)
        if standing is None:
            return
        base = standing.base
        left = _rest(base, now)
        if left is not None and left.text:
            here = _place(now)
            follows = _Origin(here, left.text) if base.text.endswith(left.text) else base
            _keep(self._standing, uri, _Standing(standing.origin, follows, here, left.text), MOST_DOCUMENTS)
        elif left is not None or agreement.taken(standing.here, standing.text, now, enough=_ENOUGH):
            self._forgive(standing.origin)
            if len(standing.text) > _A_KEY:
                _keep(self._taken, uri, _Taken(standing, is_reported=False), MOST_DOCUMENTS)
        else:
            self._judge(uri, standing, was_left=not _was_changed(standing.here, now))

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
        unwanted = [origin for origin, verdict in self._verdicts.items() if self._is_unwanted(verdict)]
        origin = _known(_Origin(_place(now), text), unwanted)
        if origin is None:
            return False
        self._verdicts.move_to_end(origin)
        return True

    def _is_unwanted(self, verdict: _Verdict) -> bool:
        return verdict.is_rejected or verdict.n_contradicted + verdict.was_left >= self._most

    def forget(self, uri: str = "") -> None:
        """Forget one document, or all of them, with their places."""
        for origin in [origin for origin, verdict in self._verdicts.items() if uri in ("", verdict.uri)]:
            del self._verdicts[origin]
        for known in (self._standing, self._taken):
            for other in [other for other in known if uri in ("", other)]:
                del known[other]

    def _forgive(self, shown: _Origin) -> None:
        self._verdicts.pop(_known(shown, self._verdicts) or shown, None)

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

    def _judge(self, uri: str, standing: _Standing, *, was_left: bool = False, is_rejected: bool = False) -> None:
        origin = _known(standing.origin, self._verdicts) or standing.origin
        verdict = self._verdicts.get(origin, _Verdict(uri))
        verdict = _Verdict(
            uri,
            verdict.n_contradicted + (not was_left and not is_rejected),
            verdict.was_left or was_left,
            verdict.is_rejected or is_rejected,
        )
        _keep(self._verdicts, origin, verdict, MOST_PLACES)


def _known(shown: _Origin, among: Iterable[_Origin]) -> _Origin | None:
    """The origin of what `shown` is a part of, or is all of."""
    begins, before = _beginning(shown.text), shown.window.prefix
    alike = [
        origin
        for origin in among
        if (begins in origin.text or _beginning(origin.text) in shown.text)
        and (origin.window.prefix[-_AT_LEAST:] in before or before[-_AT_LEAST:] in origin.window.prefix)
    ]
    return shown if shown in alike else next((origin for origin in reversed(alike) if _is_same(origin, shown)), None)


def _beginning(text: str) -> str:
    """What every form of a text holds: looking for it is quick, and mostly enough."""
    return text.lstrip()[:_TELLING].partition("\n")[0]


def _is_same(origin: _Origin, shown: _Origin) -> bool:
    if origin.window.path != shown.window.path or origin.window.language != shown.window.language:
        return False
    left = _rest(origin, shown.window)
    if left is not None:
        return left.text == shown.text
    # It was shown first in the middle of a word, and now stands at the word's beginning.
    left = _rest(shown, origin.window)
    if left is None or left.text != origin.text:
        return False
    return (shown.text[: left.n_typed] + origin.text[0]).replace("_", "a").isalnum()


def _rest(origin: _Origin, now: Window) -> agreement.Rest | None:
    return agreement.rest(origin.window, origin.text, now, whole=True, enough=_ENOUGH)


def _grown(origin: _Origin, before: str, text: str) -> _Origin:
    """With the text that has come since `before` was what is left of it."""
    return _Origin(origin.window, origin.text + text[len(before) :]) if origin.text.endswith(before) else origin


def _was_changed(then: Window, now: Window) -> bool:
    """Whether something else was typed or taken away at `then`; False: the cursor went away, as far as can be seen."""
    around, text = then.prefix + then.suffix, now.prefix + now.suffix
    if then.whole_prefix and then.whole_suffix:
        stands = text == around
    elif then.whole_prefix:
        stands = text.startswith(around)
    else:
        stands = text.endswith(around) if then.whole_suffix else around in text
    return not stands and (agreement.same_suffix(then, now) or agreement.between(then, now, enough=_ENOUGH) is not None)


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
