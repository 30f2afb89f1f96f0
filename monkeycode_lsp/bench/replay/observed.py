"""What was seen in one replay, the same for the clock's run and the real one.  All times in seconds since the first key."""

from __future__ import annotations

import msgspec


class Typed(msgspec.Struct, frozen=True):
    """One keystroke of the author, and the truth at that moment."""

    at: float
    prefix: str
    """The document before the cursor, its last 400 characters."""
    suffix: str
    """The document after the cursor, its first 200 characters."""
    then: str
    """What the author typed next at the cursor without leaving it: what a right answer begins with."""


class Sent(msgspec.Struct):
    """One request that reached the backend."""

    at: float
    key: int
    """Index of the keystroke whose text it was made from."""
    answer: str
    """What the backend says (or would have said)."""
    right: bool
    """Whether the answer is what the author typed next there."""
    ended: float | None = None
    aborted: bool = False
    """The server closed it before it was answered."""
    draft: str = ""
    """What was offered to be verified."""
    background: bool = False
    """Nobody waited for it: looked ahead."""
    prefix: str = ""
    """The text before its cursor, its last characters: what the answer was made to follow."""


class Replied(msgspec.Struct, frozen=True):
    """How the ask after one keystroke was answered."""

    at: float | None
    """None: never."""
    text: str = ""
    """The first suggestion; empty: nothing was shown."""
    origin: str = ""
    """As in `domain.Origin`; empty where it is not known."""
    superseded: bool = False
    """Answered null or by an error: the screen is left to a newer answer."""


class Observed(msgspec.Struct):
    """One system's run: `typed` and `replied` have one entry for each keystroke."""

    system: str
    typed: list[Typed]
    replied: list[Replied]
    sent: list[Sent]
    n_failed: int = 0
    """Asks that failed inside the system."""
