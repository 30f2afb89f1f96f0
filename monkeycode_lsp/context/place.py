"""Where an ask is made, and which lines of the document the window shows (pure)."""

from __future__ import annotations

import msgspec

from monkeycode_lsp.domain import Snapshot, Window


class Place(msgspec.Struct, frozen=True):
    """The cursor's place in its document."""

    uri: str
    language: str
    path: str
    """Relative, `/` separated."""
    line: int
    first: int
    """The first line that the window shows."""
    stop: int
    """The line below the last one that it shows."""

    def shows(self, uri: str, first: int, stop: int) -> bool:
        """Whether some of these lines are in the window."""
        return uri == self.uri and first < self.stop and stop > self.first


def of(snapshot: Snapshot, window: Window) -> Place:
    """Where `snapshot`'s cursor is, and what `window` shows around it."""
    return Place(
        uri=snapshot.uri,
        language=snapshot.language,
        path=window.path,
        line=snapshot.line,
        first=max(0, snapshot.line - window.prefix.count("\n")),
        stop=min(len(snapshot.lines), snapshot.line + 1 + window.suffix.removesuffix("\n").count("\n")),
    )
