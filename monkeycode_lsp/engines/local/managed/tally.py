"""What the clients of a managed server say of their asks: how many run, since when none does, and what was done in all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import msgspec

from monkeycode_lsp.engines.local import wire

_MOST_RUNNING = 1_000
"""Of one client: more is none of ours."""
C = TypeVar("C", bound=Hashable)


class Tally(Generic[C]):
    """Of one process.  Used from the threads of all clients."""

    def __init__(self, clock: Callable[[], float]) -> None:
        # The mutable state is the asks that run by client, the totals, and since when that is so; it changes under `_lock` only.
        self._clock = clock
        self._lock = threading.Lock()
        self._running: dict[C, set[int]] = {}
        self._totals = wire.Totals()
        self._since = clock()

    @property
    def n_running(self) -> int:
        with self._lock:
            return self._n_running()

    @property
    def totals(self) -> wire.Totals:
        with self._lock:
            return self._totals

    @property
    def idle_since(self) -> float | None:
        """None: asks run."""
        with self._lock:
            return None if self._running else self._since

    def start(self) -> None:
        """From now on there can be asks."""
        with self._lock:
            self._since = self._clock()

    def began(self, client: C, number: int) -> None:
        """Raises `FrameError` for a number that runs already, or one too many."""
        with self._lock:
            asks = self._running.get(client, set())
            if number in asks or len(asks) >= _MOST_RUNNING:
                raise wire.FrameError("it tells of an ask twice, or of too many")
            self._change({**self._running, client: asks | {number}})

    def ended(self, client: C, ended: wire.Ended) -> None:
        """Raises `FrameError` for an ask that does not run."""
        with self._lock:
            asks = self._running.get(client, set())
            if ended.id not in asks:
                raise wire.FrameError("it tells the end of an ask that has none")
            self._end(client, asks - {ended.id})
            totals = self._totals
            self._totals = msgspec.structs.replace(
                totals,
                asks=totals.asks + 1,
                cancelled=totals.cancelled + ended.cancelled,
                reused=totals.reused + ended.reused,
                read=totals.read + ended.read,
                generated=totals.generated + ended.generated,
            )

    def forget(self, client: C) -> None:
        """The client has gone, and its asks with it."""
        with self._lock:
            n_lost = len(self._running.get(client, ()))
            if n_lost:
                self._end(client, set())
                self._totals = msgspec.structs.replace(
                    self._totals, asks=self._totals.asks + n_lost, cancelled=self._totals.cancelled + n_lost
                )

    def _end(self, client: C, left: set[int]) -> None:
        others = {other: asks for other, asks in self._running.items() if other != client}
        self._change({**others, client: left} if left else others)

    def _change(self, running: dict[C, set[int]]) -> None:
        now = self._clock()
        if self._running:
            self._totals = msgspec.structs.replace(self._totals, busy_s=self._totals.busy_s + now - self._since)
        self._running = running
        self._since = now

    def _n_running(self) -> int:
        return sum(map(len, self._running.values()))
