"""What stands on the screen because of which ask, what becomes of it, and who learns from that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from monkeycode_lsp import clock
from monkeycode_lsp.domain import Fate, Snapshot, Suggestion, Window
from monkeycode_lsp.observe.fates import Fates, Told
from monkeycode_lsp.observe.outcomes import Outcomes
from monkeycode_lsp.observe.retention import Retention
from monkeycode_lsp.recall.showings import Showings
from monkeycode_lsp.silence.judge import Silence, Verdict

READ_S = 0.4
"""What is on the screen for a shorter time was not read."""
_AT_ONCE = 2
"""Characters; a single one is a key."""
_KNOWN = 256
"""Asks of which the document is remembered."""


class _Shown(msgspec.Struct, frozen=True):
    """What one ask was answered with."""

    uri: str
    verdict: Verdict
    at: float
    text: str = ""


class Screen:
    """Of one pipeline."""

    # The mutable state is what the last asks that showed something were about; it changes in `shows` and `unseen` only.

    def __init__(self, showings: Showings, outcomes: Outcomes, silence: Silence) -> None:
        self._showings = showings
        self._outcomes = outcomes
        self._silence = silence
        self._fates = Fates()
        self._retention = Retention()
        self._shown: dict[int, _Shown] = {}

    def shows(self, ask_id: int, snapshot: Snapshot, window: Window, text: str, verdict: Verdict) -> None:
        """The ask is answered with `text`."""
        self._showings.shown(snapshot, window, text)
        self._shown[ask_id] = _Shown(snapshot.uri, verdict, clock.now(), text)
        if len(self._shown) > _KNOWN:
            del self._shown[next(iter(self._shown))]
        self._tell(self._fates.shown(ask_id, snapshot, text))
        self._look()

    def took(self, uri: str, inserted: str) -> bool:
        """Whether the last edit put in what was shown there last, all at once."""
        if len(inserted) < _AT_ONCE:
            return False
        last = next((shown for shown in reversed(self._shown.values()) if shown.uri == uri), None)
        return last is not None and last.text == inserted

    def edited(self, uri: str, lines: Sequence[str]) -> None:
        """The document has other lines now."""
        self._showings.edited(uri, lines)
        self._tell(self._fates.edited(uri, lines))
        self._retention.edited(uri, lines, clock.now())
        self._look()

    def unseen(self, suggestions: Iterable[Suggestion]) -> None:
        """The text had moved on when the answer was there, so nothing was shown."""
        for suggestion in suggestions:
            self._outcomes.unseen(suggestion.id)
            self._fates.unseen(suggestion.id)
            shown = self._shown.pop(suggestion.id, None)
            if shown is not None:
                self._showings.unseen(shown.uri)

    def accepted(self, ask_id: int) -> None:
        """The user took what that ask showed."""
        if ask_id in self._shown:
            self._tell(self._fates.accepted(ask_id))
            self._showings.accepted(self._shown[ask_id].uri)

    def rejected(self, ask_id: int) -> None:
        """The user said no to what that ask showed: not again there.  What another one showed since is another matter."""
        shown = self._shown.get(ask_id)
        if shown is not None and ask_id == max(number for number, other in self._shown.items() if other.uri == shown.uri):
            self._showings.rejected(shown.uri)
            self._tell(self._fates.rejected(ask_id))

    def closed(self, uri: str) -> None:
        """The document was closed."""
        self._tell(self._fates.closed(uri))
        self._retention.closed(uri)

    def _tell(self, told: Iterable[Told]) -> None:
        for one in told:
            shown = self._shown.get(one.ask_id)
            fate = one.fate
            if fate is Fate.IGNORED and shown is not None and clock.now() - shown.at < READ_S:
                fate = Fate.BRIEF  # he was typing
            self._outcomes.fated(one.ask_id, fate, len(one.taken))
            if shown is not None:
                self._silence.learn(shown.verdict, fate, one.share)
            if one.place is not None and one.taken:
                self._retention.watch(one.ask_id, one.uri, one.place, one.taken, clock.now())

    def _look(self) -> None:
        for kept in self._retention.due(clock.now()):
            self._outcomes.kept(kept.ask_id, kept.after_s, kept.share)
