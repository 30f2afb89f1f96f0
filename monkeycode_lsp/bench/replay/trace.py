"""Recorded typing: what was typed where, and when."""

from __future__ import annotations

import msgspec


class Patch(msgspec.Struct, frozen=True, array_like=True):
    """One replacement.  Offsets are code points of the text as it is after the patches before it."""

    position: int
    deleted: int
    inserted: str


class Key(msgspec.Struct, frozen=True):
    """One keystroke (or paste, or jump with an edit): everything that an editor would send as one change."""

    at_s: float
    """Since the trace began."""
    patches: tuple[Patch, ...]

    @property
    def cursor(self) -> int:
        """Where the cursor stands afterwards: behind the last patch's text."""
        last = self.patches[-1]
        return last.position + len(last.inserted)


class Trace(msgspec.Struct, frozen=True):
    """One document's history."""

    name: str
    language: str
    start: str
    keys: tuple[Key, ...]
