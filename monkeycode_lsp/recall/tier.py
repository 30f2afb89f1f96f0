"""What a tier beyond this process's memory can do.  It never raises and never blocks the event loop."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Protocol

from monkeycode_lsp.domain import Origin
from monkeycode_lsp.recall.record import Record

Warn = Callable[[str], None]
"""Tells the user, once, in a sentence or two, what is missing and how to mend it.  May be called from any thread."""


class Reach(enum.IntEnum):
    """How far what is remembered of a place may go; more is further."""

    PROCESS = 0
    """A secret stands there, or in the answer: it is kept where no disk and no other process has it."""
    MACHINE = 1
    """The text must not leave this machine."""
    TEAM = 2


def reach(*, has_secret: bool, stays_here: bool) -> Reach:
    """Of a place, by what stands there."""
    if has_secret:
        return Reach.PROCESS
    return Reach.MACHINE if stays_here else Reach.TEAM


class Tier(Protocol):
    """One place where records are kept by a 16-byte key."""

    origin: Origin

    @property
    def patience_s(self) -> float:
        """How long an answer is worth waiting for; 0 while it is out of order."""
        ...

    def open(self) -> None:
        """Get ready, for the first ask will come soon; returns at once."""
        ...

    async def get(self, key: bytes) -> Record | None:
        """What is kept there; None for a miss and for any trouble."""
        ...

    def put(self, key: bytes, record: Record) -> None:
        """Keep it, some time soon; returns at once."""
        ...

    async def aclose(self) -> None:
        """Finish what was begun, within a second.  Can be called twice."""
        ...
