"""The asks of all clients: those that the decode thread has not seen yet, and those that it works on.

Every job that was put in comes out of exactly one of `done`, `cancel` and `drop`.
"""

from __future__ import annotations

import threading
import time
from typing import Generic, TypeVar

from monkeycode_lsp.domain import Priority
from monkeycode_lsp.engines.local.wire import Generate

Owner = TypeVar("Owner")

_NOBODY = max(Priority) + 1


class Job(Generic[Owner]):
    """One ask of one client."""

    def __init__(self, owner: Owner, ask: Generate) -> None:
        self.owner = owner
        self.ask = ask
        self.cancelled = threading.Event()


class Backlog(Generic[Owner]):
    """Lies between the threads that read from clients and the one that decodes."""

    def __init__(self, *, most_per_owner: int = 64) -> None:
        # The mutable state is the jobs that are not over by (owner, id), those among them that wait, those that were
        # at work when their owner went, the most urgent priority that waits, since when there is nothing to do, and
        # `_is_woken`; all of it changes under `_changed` only.
        self._changed = threading.Condition()
        self._known: dict[tuple[int, int], Job[Owner]] = {}
        self._waiting: list[Job[Owner]] = []
        self._dropped: list[Job[Owner]] = []
        self._most_urgent: int = _NOBODY
        self._idle_since: float | None = time.monotonic()
        self._is_woken = False
        self._most_per_owner = most_per_owner
        self.n_unseen = 0
        """Jobs that were cancelled before they were drained."""

    def put(self, job: Job[Owner]) -> bool:
        """Queue a job; False: the owner has too many already.  Raises `ValueError` for an id in use."""
        with self._changed:
            key = _key(job.owner, job.ask.id)
            if key in self._known:
                raise ValueError(f"id {job.ask.id} is in use")
            if sum(owner == key[0] for owner, _ in self._known) >= self._most_per_owner:
                return False
            self._known[key] = job
            self._waiting.append(job)
            self._note()
            self._changed.notify_all()
            return True

    def wait(self) -> None:
        """Return when there is something to look at."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._dropped or self._is_woken)
            self._is_woken = False

    def wake(self) -> None:
        """Let `wait` return."""
        with self._changed:
            self._is_woken = True
            self._changed.notify_all()

    def drain(self) -> tuple[list[Job[Owner]], list[Job[Owner]]]:
        """The jobs that have come, which are now at work until `done`, and those at work that nobody wants any more."""
        with self._changed:
            come, gone = self._waiting, self._dropped
            self._waiting, self._dropped = [], []
            self._note()
            return come, gone

    def is_urgent(self, priority: Priority) -> bool:
        """Whether a job waits that is more urgent.  Asked thousands of times a second, hence without the lock."""
        return self._most_urgent < priority

    def done(self, job: Job[Owner]) -> bool:
        """A job at work is over; False: its owner has gone."""
        with self._changed:
            key = _key(job.owner, job.ask.id)
            if self._known.get(key) is not job:
                return False
            del self._known[key]
            self._note()
            return True

    def cancel(self, owner: Owner, number: int) -> Job[Owner] | None:
        """Stop a job.  Returned: it had not begun, and the caller answers it.  None: it is at work, or there is none."""
        with self._changed:
            job = self._known.get(_key(owner, number))
            if job is None:
                return None
            job.cancelled.set()
            if job not in self._waiting:
                return None
            self.n_unseen += 1
            self._waiting.remove(job)
            del self._known[_key(owner, number)]
            self._note()
            return job

    def drop(self, owner: Owner) -> None:
        """The owner has gone: none of its jobs is of use any more."""
        with self._changed:
            theirs = [job for job in self._known.values() if job.owner is owner]
            for job in theirs:
                job.cancelled.set()
                del self._known[_key(owner, job.ask.id)]
            self._dropped += [job for job in theirs if job not in self._waiting]
            self._waiting = [job for job in self._waiting if job.owner is not owner]
            self._note()
            self._changed.notify_all()

    def at_work(self) -> list[Job[Owner]]:
        """The jobs that were drained and are not over."""
        with self._changed:
            return [job for job in self._known.values() if job not in self._waiting]

    @property
    def n_jobs(self) -> int:
        """Jobs that are not over."""
        return len(self._known)

    @property
    def idle_since(self) -> float | None:
        """Since when (`time.monotonic`) there is nothing to do; None: there is."""
        return self._idle_since

    def _note(self) -> None:
        self._most_urgent = min((job.ask.priority for job in self._waiting), default=_NOBODY)
        if self._known:
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = time.monotonic()


def _key(owner: object, number: int) -> tuple[int, int]:
    return id(owner), number
