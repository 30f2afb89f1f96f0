"""The engine process's inside: asks go from its clients to the decoder, and what comes of them goes back.

`Service.run` is the one thread that decodes.  It takes up whatever has come between two steps; who goes first is the decoder's
business.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from monkeycode_lsp.engines.local import wire
from monkeycode_lsp.engines.local.decoder import Decoder, LoadError
from monkeycode_lsp.engines.local.host.backlog import Backlog, Job
from monkeycode_lsp.engines.local.host.host import Client, Host, Limits
from monkeycode_lsp.engines.local.host.registry import Entry
from monkeycode_lsp.engines.local.host.rendezvous import Door

logger = logging.getLogger(__name__)

ClientJob: TypeAlias = Job[Client]

_MOST_COUNTED = 262_144
"""Characters in one go: it takes a tenth of a second, and the client's other words wait for it."""


class Service:
    """Serves one decoder to all clients that come to one door.  See `Served`."""

    def __init__(
        self, *, make_decoder: Callable[[], Decoder], door: Door, entry: Entry, limits: Limits, overdue: Callable[[], None]
    ) -> None:
        # The mutable state is the decoder, which belongs to the thread of `run` but for its totals, and when the model
        # was loaded.
        self._make_decoder = make_decoder
        self._decoder: Decoder | None = None
        self._entry = entry
        self._backlog: Backlog[Client] = Backlog()
        self._loaded_at: float | None = None
        self.host = Host(door=door, entry=entry, served=self, limits=limits, overdue=overdue)

    def run(self) -> bool:
        """Wait for a client, load, then decode until it is time to leave.  False: it could not be loaded."""
        self.host.start()
        # A crash while loading must find somebody who was told what came before it.
        if not self.host.wait_for_client():
            return True
        try:
            decoder = self._decoder = self._make_decoder()
            self._is_starting(decoder.build())
            self._is_ready(decoder.load())
        except LoadError as exc:
            self.host.tell(wire.LoadFailed(exc.kind, exc.message))
            return False
        while not self.host.is_leaving:
            self._turn(decoder)
        return True

    def close(self) -> None:
        """Let all clients go, and free the model."""
        self.host.ending()
        try:
            if self._decoder is not None:
                self._decoder.close()
        finally:
            self.host.close()

    def hear(self, client: Client, message: wire.Work) -> None:
        """See `Served.hear`."""
        match message:
            case wire.Generate():
                if not self._backlog.put(Job(client, message)):
                    client.send(wire.Failed(message.id, "busy", "Too many asks wait already."))
            case wire.Cancel():
                if job := self._backlog.cancel(client, message.id):
                    client.send(wire.Done(job.ask.id, "cancelled"))
            case wire.Count():
                client.send(wire.Counted(message.number, self._counts(message.texts)))
            case _:
                raise wire.FrameError("it tells of asks that did not come here")

    def _counts(self, texts: Sequence[str]) -> tuple[int, ...]:
        if self._decoder is None or self._loaded_at is None or sum(map(len, texts)) > _MOST_COUNTED:
            return ()
        return tuple(self._decoder.count(texts))

    def forget(self, client: Client) -> None:
        """See `Served.forget`."""
        self._backlog.drop(client)

    def idle_since(self) -> float | None:
        """See `Served.idle_since`."""
        since = self._backlog.idle_since
        return None if since is None or self._loaded_at is None else max(since, self._loaded_at)

    def describe(self) -> wire.Status:
        """See `Served.describe`."""
        totals = self._decoder.totals if self._decoder is not None else wire.Totals()
        n_unseen = self._backlog.n_unseen
        totals = msgspec.structs.replace(totals, asks=totals.asks + n_unseen, cancelled=totals.cancelled + n_unseen)
        return wire.Status(pid=0, name=self._entry.note.name, since=0.0, clients=0, running=self._backlog.n_jobs, totals=totals)

    def end(self) -> None:
        """See `Served.end`: an answer that is not whole is left, because it may be asked of the next process."""
        for job in self._backlog.at_work():
            job.cancelled.set()
        self._backlog.wake()

    def _is_starting(self, build: wire.Build) -> None:
        # Also noted: whoever started us may not be connected yet when we die of what comes now.
        self._entry.update(msgspec.structs.replace(self._entry.note, build=build))
        self.host.tell(wire.Starting(build))

    def _is_ready(self, ready: wire.Ready) -> None:
        self._loaded_at = time.monotonic()
        self._entry.update(
            msgspec.structs.replace(self._entry.note, name=f"{ready.name} {ready.quantization}".strip(), on_gpu=ready.on_gpu)
        )
        self.host.tell(ready)

    def _turn(self, decoder: Decoder) -> None:
        come, gone = self._backlog.drain()
        try:
            for job in gone:
                decoder.drop(job)
            for job in come:
                decoder.begin(job, job.ask, job.cancelled.is_set)
            steps = decoder.step(self._backlog.is_urgent) if decoder.busy else None
        except Exception as exc:
            # The outermost handler of this process: one broken batch must not take the model from all windows.
            logger.exception("A batch could not be decoded.")
            if not self._give_up(decoder, f"{type(exc).__name__} in the engine process."):
                raise
            return
        if steps is None:
            self._backlog.wait()
            return
        for step in steps:
            if isinstance(step.job, Job):
                self._answer(step.job, step.event)

    def _answer(self, job: ClientJob, event: wire.Delta | wire.Done | wire.Failed) -> None:
        # Forgotten before it is answered: the client may use the id again as soon as it reads the answer.
        if isinstance(event, wire.Delta) or self._backlog.done(job):
            job.owner.send(event)

    def _give_up(self, decoder: Decoder, message: str) -> bool:
        """Fail all that was at work.  False: there was nothing, so the decoder is broken and not the batch."""
        jobs = self._backlog.at_work()
        for job in jobs:
            decoder.drop(job)
            self._answer(job, wire.Failed(job.ask.id, "internal", message))
        return bool(jobs)
