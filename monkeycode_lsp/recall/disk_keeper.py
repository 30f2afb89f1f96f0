"""The store while it is in order; where it is not, one warning and a rest.  Blocks, never raises.

Invariant: one trouble is told once, however often it comes back, and costs one attempt a minute.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from monkeycode_lsp.recall import disk_trouble
from monkeycode_lsp.recall.disk_store import Connect, Store, connect
from monkeycode_lsp.recall.disk_trouble import Trouble
from monkeycode_lsp.recall.record import Record
from monkeycode_lsp.recall.tier import Warn

logger = logging.getLogger(__name__)

T = TypeVar("T")

_ANEW = frozenset({Trouble.DAMAGED, Trouble.GONE, Trouble.REPLACED})
"""A new database mends these."""


class Keeper:
    """All calls come from one thread, except `resting`."""

    # The mutable state is the open store, the end of the rest, when a database was last begun anew, and what
    # has been told; it changes in `_do`, `_opened` and `_mend` only.

    def __init__(
        self,
        folder: Path,
        *,
        ttl_s: float,
        most_bytes: int,
        warn: Warn,
        connect: Connect = connect,
        rest_s: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._make = partial(Store, folder, ttl_s=ttl_s, most_bytes=most_bytes, connect=connect)
        self._warn = warn
        self._rest_s = rest_s
        self._clock = clock
        self._store: Store | None = None
        self._rest_until = float("-inf")
        self._anew_at = float("-inf")
        self._told: set[Trouble] = set()
        self._well = True
        """Something has worked since the user was last told: a trouble that changes its face is told once."""

    @property
    def resting(self) -> bool:
        """Whether it is out of order for now."""
        return self._clock() < self._rest_until

    def open(self) -> None:
        """Do now what the first call would do."""
        self._do(lambda _: None)

    def get(self, key: bytes) -> Record | None:
        return self._do(lambda store: store.get(key))

    def put(self, key: bytes, record: Record) -> None:
        self._do(lambda store: store.put(key, record))

    def close(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            with contextlib.suppress(Exception):  # it may be the reason why it is closed
                store.close()

    def _do(self, work: Callable[[Store], T]) -> T | None:
        for _ in range(2):  # once more on a new database
            if self.resting:
                break
            store = self._store or self._make()
            try:
                if self._store is None:
                    store.open()
                    self._store = store
                found = work(store)
            except Exception as exc:  # noqa: BLE001 - whatever another program put into the file, asking goes on
                if not self._mend(store, exc):
                    break
            else:
                self._well = True
                return found
        return None

    def _mend(self, store: Store, error: Exception) -> bool:
        """Whether a new database can be begun: where that helps and has not just been tried; else there is a rest."""
        kind = disk_trouble.of(error)
        self._store = store
        self.close()
        self._tell(kind, error)
        now = self._clock()
        if kind not in _ANEW or now - self._anew_at < self._rest_s:
            self._rest_until = now + self._rest_s
            return False
        self._anew_at = now
        if kind is Trouble.DAMAGED:
            try:
                store.set_aside()
            except (OSError, disk_trouble.TroubleError) as exc:
                logger.info("The damaged database stays where it is (%s).", type(exc).__name__)
        return True

    def _tell(self, kind: Trouble, error: Exception) -> None:
        logger.info("Suggestions on disk: %s (%s).", kind.value, type(error).__name__)
        text = disk_trouble.sentence(kind, self._folder, error)
        if text and self._well and kind not in self._told:
            self._told.add(kind)
            self._well = False
            self._warn(text)
