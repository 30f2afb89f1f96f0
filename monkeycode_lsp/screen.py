"""What stands on the screen because of which ask, and what the editor says became of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from monkeycode_lsp.domain import Snapshot, Suggestion, Window
from monkeycode_lsp.observe.outcomes import Outcomes
from monkeycode_lsp.recall.showings import Showings

_KNOWN = 256
"""Asks of which the document is remembered."""


class Screen:
    """Of one pipeline."""

    # The mutable state is the documents of the last asks that showed something; it changes in `shows` and `unseen` only.

    def __init__(self, showings: Showings, outcomes: Outcomes) -> None:
        self._showings = showings
        self._outcomes = outcomes
        self._documents: dict[int, str] = {}

    def shows(self, ask_id: int, snapshot: Snapshot, window: Window, text: str) -> None:
        """The ask is answered with `text`."""
        self._showings.shown(snapshot, window, text)
        self._documents[ask_id] = snapshot.uri
        if len(self._documents) > _KNOWN:
            del self._documents[next(iter(self._documents))]

    def edited(self, uri: str, lines: Sequence[str]) -> None:
        """The document has other lines now."""
        self._showings.edited(uri, lines)

    def unseen(self, suggestions: Iterable[Suggestion]) -> None:
        """The text had moved on when the answer was there, so nothing was shown."""
        for suggestion in suggestions:
            self._outcomes.unseen(suggestion.id)
            uri = self._documents.pop(suggestion.id, None)
            if uri is not None:
                self._showings.unseen(uri)

    def accepted(self, ask_id: int) -> None:
        """The user took what that ask showed."""
        self._outcomes.accept(ask_id)
        if ask_id in self._documents:
            self._showings.accepted(self._documents[ask_id])

    def rejected(self, ask_id: int) -> None:
        """The user said no to what that ask showed: not again there.  What another one showed since is another matter."""
        uri = self._documents.get(ask_id)
        if uri is not None and ask_id == max(shown for shown, at in self._documents.items() if at == uri):
            self._showings.rejected(uri)
