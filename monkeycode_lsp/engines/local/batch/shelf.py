"""KV states of documents that lost their slot: kept in memory, least recently used first to go.

An entry is worth what it shares with a prompt from the left; reading so many tokens again takes far longer
than putting a state back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from monkeycode_lsp.engines.local.batch.tokens import common_prefix


class Entry:
    """One state: the tokens that it holds, and how to get at its bytes."""

    def __init__(self, tokens: Sequence[int], n_bytes: int, load: Callable[[], bytes | None]) -> None:
        self.tokens = tuple(tokens)
        self.n_bytes = n_bytes
        self.load = load
        """None: it is gone, or cannot be read."""


class Shelf:
    """States by what they hold."""

    def __init__(self, most_bytes: int) -> None:
        # The mutable state is the entries, least recently used first; it changes in `put`, `used` and `drop`.
        self._most_bytes = most_bytes
        self._entries: list[Entry] = []

    @property
    def n_bytes(self) -> int:
        """What all of them take."""
        return sum(entry.n_bytes for entry in self._entries)

    def __iter__(self) -> Iterator[Entry]:
        """All entries, the most recently used first."""
        return reversed(self._entries)

    def has(self, tokens: Sequence[int]) -> bool:
        """Whether an entry holds all of these tokens, from the left."""
        return any(common_prefix(entry.tokens, tokens) == len(tokens) for entry in self._entries)

    def put(self, entry: Entry) -> None:
        """Keep a state; what it holds more of is dropped, and so is what does not fit any more."""
        if entry.n_bytes > self._most_bytes:
            return
        self._entries = [other for other in self._entries if common_prefix(other.tokens, entry.tokens) < len(other.tokens)]
        self._entries.append(entry)
        while self.n_bytes > self._most_bytes:
            self._entries.pop(0)

    def best(self, wanted: Sequence[int]) -> tuple[Entry | None, int]:
        """The entry that shares most with a prompt, and how many tokens that is."""
        shared, entry = max(
            ((common_prefix(entry.tokens, wanted), entry) for entry in self._entries), default=(0, None), key=lambda two: two[0]
        )
        return entry, shared

    def used(self, entry: Entry) -> None:
        """It is of use now: others go before it."""
        self._entries.remove(entry)
        self._entries.append(entry)

    def drop(self, entry: Entry) -> None:
        """It lives in a slot again, or is of no use."""
        if entry in self._entries:
            self._entries.remove(entry)
