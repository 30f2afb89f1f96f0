"""The first tier: this process's memory.  Bounded by bytes and by age."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from monkeycode_lsp.recall.record import Record

_OVERHEAD = 200
"""Bytes of an entry beside its text, roughly."""


class Memory:
    """Least recently used goes first."""

    # The mutable state is the entries and their total size; it changes in `get`, `put` and `_drop` only.

    def __init__(self, *, most_bytes: int, ttl_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._entries: OrderedDict[bytes, tuple[float, Record]] = OrderedDict()
        self._n_bytes = 0
        self._most_bytes = most_bytes
        self._ttl_s = ttl_s
        self._clock = clock

    def __len__(self) -> int:
        return len(self._entries)

    def now(self) -> float:
        """By this memory's clock."""
        return self._clock()

    def is_fresh(self, born: float) -> bool:
        """Whether what was made at that time is young enough."""
        return self._clock() - born <= self._ttl_s

    def born(self, key: bytes) -> float:
        """When what is kept under `key` was put there; now, if there is nothing."""
        entry = self._entries.get(key)
        return entry[0] if entry is not None else self._clock()

    def get(self, key: bytes) -> Record | None:
        """What was kept under `key`, unless it is too old."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        born, record = entry
        if not self.is_fresh(born):
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return record

    def put(self, key: bytes, record: Record) -> None:
        """Keep `record`; older ones make room."""
        self._drop(key)
        self._entries[key] = (self._clock(), record)
        self._n_bytes += _size(record)
        while self._n_bytes > self._most_bytes and self._entries:
            self._drop(next(iter(self._entries)))

    def clear(self) -> None:
        """Keep nothing."""
        self._entries.clear()
        self._n_bytes = 0

    def _drop(self, key: bytes) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._n_bytes -= _size(entry[1])


def _size(record: Record) -> int:
    return _OVERHEAD + 4 * len(record.text)
