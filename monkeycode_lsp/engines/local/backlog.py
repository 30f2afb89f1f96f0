"""The asks that wait for the decode thread, and the one it works on.

Order: by priority, then the newest interactive one first (the user has moved on from the older), then
by age.  Every job that was put in comes out of exactly one of `take`, `cancel` and `drop`.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from typing import Generic, TypeVar

from monkeycode_lsp.domain import Priority
from monkeycode_lsp.engines.local.wire import Generate

Owner = TypeVar("Owner")


class Job(Generic[Owner]):
    """One ask of one client."""

    def __init__(self, owner: Owner, ask: Generate) -> None:
        self.owner = owner
        self.ask = ask
        self.cancelled = threading.Event()


class Backlog(Generic[Owner]):
    """A queue between the threads that read from clients and the one that decodes."""

    def __init__(self, *, most_per_owner: int = 64) -> None:
        # The mutable state is the heap, the jobs that wait or run by (owner, id), and `_woken`; all of it
        # changes under `_changed` only.
        self._changed = threading.Condition()
        self._heap: list[tuple[int, int, Job[Owner]]] = []
        self._known: dict[tuple[int, int], Job[Owner]] = {}
        self._numbers = itertools.count()
        self._running: Job[Owner] | None = None
        self._woken = False
        self._most_per_owner = most_per_owner

    def put(self, job: Job[Owner]) -> bool:
        """Queue a job; False: the owner has too many already.  Raises `ValueError` for an id in use."""
        with self._changed:
            key = _key(job.owner, job.ask.id)
            if key in self._known:
                raise ValueError(f"id {job.ask.id} is in use")
            if sum(owner == key[0] for owner, _ in self._known) >= self._most_per_owner:
                return False
            self._known[key] = job
            number = next(self._numbers)
            newest_first = job.ask.priority is Priority.INTERACTIVE
            heapq.heappush(self._heap, (int(job.ask.priority), -number if newest_first else number, job))
            self._changed.notify()
            return True

    def take(self, timeout_s: float | None) -> Job[Owner] | None:
        """The next job, which now runs until `done`; None: the time is up or an owner has gone."""
        with self._changed:
            self._changed.wait_for(lambda: self._heap or self._woken, timeout_s)
            self._woken = False
            if not self._heap:
                return None
            self._running = heapq.heappop(self._heap)[2]
            return self._running

    def done(self, job: Job[Owner]) -> None:
        """The job that ran has been answered."""
        with self._changed:
            self._running = None
            self._known.pop(_key(job.owner, job.ask.id), None)

    def cancel(self, owner: Owner, number: int) -> Job[Owner] | None:
        """Stop a job.  Returned: it had not begun, and the caller answers it.  None: it runs, or there is none."""
        with self._changed:
            job = self._known.get(_key(owner, number))
            if job is None:
                return None
            job.cancelled.set()
            if job is self._running:
                return None
            self._forget([job])
            return job

    def drop(self, owner: Owner) -> None:
        """The owner has gone: none of its jobs is of use any more."""
        with self._changed:
            theirs = [job for job in self._known.values() if job.owner is owner]
            for job in theirs:
                job.cancelled.set()
            self._forget([job for job in theirs if job is not self._running])
            self._woken = True
            self._changed.notify()

    def _forget(self, jobs: list[Job[Owner]]) -> None:
        for job in jobs:
            del self._known[_key(job.owner, job.ask.id)]
        self._heap = [entry for entry in self._heap if entry[2] not in jobs]
        heapq.heapify(self._heap)


def _key(owner: object, number: int) -> tuple[int, int]:
    return id(owner), number
