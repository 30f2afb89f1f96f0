"""One server's place at a shared engine process: found or started, waited for, buried when it died, started again with growing pauses.

The first who needs the process finds the one of this model and these settings, or starts it; whoever comes meanwhile waits for the
same.  What kind of process it is, and what the engine makes of one that answers, is `Kind`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, Literal, Protocol, TypeVar

import msgspec

from monkeycode_lsp import __version__
from monkeycode_lsp.config import Local
from monkeycode_lsp.engines.local import explain, ladder, verdict
from monkeycode_lsp.engines.local.decoder import Options
from monkeycode_lsp.engines.local.host import control, identity, launch, registry, rendezvous
from monkeycode_lsp.engines.local.host.launch import Recipe, Running
from monkeycode_lsp.engines.local.host.link import Patience
from monkeycode_lsp.engines.local.host.registry import Note
from monkeycode_lsp.engines.local.host.rendezvous import Place
from monkeycode_lsp.engines.local.ladder import Attempt, Fall
from monkeycode_lsp.engines.local.verdict import Verdict
from monkeycode_lsp.errors import EngineBusyError, EngineError, EngineUnavailableError

logger = logging.getLogger(__name__)

PAUSES_S = (0.0, 1.0, 2.0, 5.0, 15.0, 30.0)
"""Before the next start, after so many failures in a row."""
_BURIAL_S = 2.0
_MOST_KILLED_STARTS = 3
"""Whoever kills a process that loads has reasons of his own; when it is always so, it is the system, for want of memory."""
T = TypeVar("T")


class Kind(Protocol[T]):
    """What a process is started for.  All but `attach` and `detach` is called on a thread."""

    name: Literal["native", "managed"]
    command: tuple[str, ...]

    def check(self) -> None:
        """Raises `EngineUnavailableError` where nothing is installed that could be started."""
        ...

    def library(self) -> list[str]:
        """Names what is installed; another build is another process."""
        ...

    def options(self, attempt: Attempt) -> Options:
        """How the model is loaded.  Raises `EngineUnavailableError` for settings that cannot be used."""
        ...

    async def attach(self, running: Running, fingerprint: str) -> T:
        """What the engine makes of a process that answers.  Raises an `EngineError`."""
        ...

    async def detach(self, attached: T) -> None:
        """It is not used any more."""
        ...

    def unavailable(self, fall: Fall) -> EngineUnavailableError:
        """No attempt lived; this is how the last one fell."""
        ...

    def fell_back(self, first: Fall, attempt: Attempt) -> str:
        """Said once, when this attempt lives and the first did not."""
        ...


class _Setup(msgspec.Struct, frozen=True):
    """Under which names the process of these settings is found and things about it are remembered."""

    key: str
    verdict: str
    fingerprint: str

    @property
    def failure(self) -> str:
        """Under which name it is remembered that no attempt lived, for those who waited meanwhile."""
        return f"{self.verdict}.start"


class Tenant(Generic[T]):
    """See above."""

    def __init__(
        self,
        kind: Kind[T],
        *,
        settings: Local,
        model: Path,
        notify: Callable[[str], None],
        pauses_s: Sequence[float] = PAUSES_S,
        load_timeout_s: float = 300.0,
        patience: Patience | None = None,
        loopback: bool = rendezvous.LOOPBACK,
        retires_others: bool = True,
    ) -> None:
        # The mutable state is the process that we are connected to, the tasks that look for it and that tell older ones,
        # and what the last failures forbid; it changes in `up`, `_start`, `bury` and `_failed` only.
        self._kind = kind
        self._settings = settings
        self._model = model
        self._notify = notify
        self._pauses_s = pauses_s
        self._retires_others = retires_others
        self._recipe = Recipe(
            command=kind.command,
            note=Note(kind=kind.name, model=str(model), version=__version__),
            linger_s=float(settings.linger_seconds),
            idle_s=settings.idle_minutes * 60.0,
            loopback=loopback,
            timeout_s=load_timeout_s,
            patience=patience or Patience(),
        )
        self._attached: tuple[Running, T] | None = None
        self._starting: asyncio.Task[tuple[Running, T]] | None = None
        self._retiring: asyncio.Task[None] | None = None
        self._burying = asyncio.Lock()
        self._setup: _Setup | None = None
        self._n_failures = 0
        self._failure: EngineError | None = None
        self._not_before = 0.0
        self._closed = False

    @property
    def running(self) -> Running | None:
        """The process that we are connected to."""
        return self._attached[0] if self._attached is not None else None

    async def up(self) -> tuple[Running, T]:
        """The process that we are connected to; finds or starts it if there is none.  Raises an `EngineError`."""
        if self._closed:
            raise EngineUnavailableError("The engine has been closed.")
        if self._attached is not None:
            if self._attached[0].link.is_open:
                return self._attached
            await self.bury(self._attached[0])
        if self._starting is None or self._starting.done():
            self._starting = asyncio.create_task(self._start())
            # Whoever asked may have gone when it fails; then nobody else retrieves the error.
            self._starting.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(self._starting)

    def works(self) -> None:
        """An answer came to its end: failures before it count no more."""
        self._n_failures = 0

    async def bury(self, running: Running, *, hung: bool = False) -> None:
        """Clear away after a process whose connection is lost; whoever else meets that meanwhile waits."""
        async with self._burying:
            attached = self._attached
            if attached is None or attached[0] is not running:
                await running.link.aclose()
                return
            self._attached = None
            await running.link.aclose()
            await self._kind.detach(attached[1])
            if self._setup is None or (running.link.has_left and not hung):
                return
            status = await running.child.ended(timeout_s=_BURIAL_S) if running.child is not None else None
            hung = hung or running.link.was_hung
            how = "hung" if hung else "stopped unexpectedly" if status is None else explain.how(Fall(status))
            logger.warning("The engine process %s.", how)
            self._failed(EngineBusyError(explain.restarted(how)), pause_s=self._pause_s())
            await self._count_crash(self._setup, await launch.sweep(running.place))

    async def aclose(self) -> None:
        """Leave the process to others."""
        self._closed = True
        for task in (self._starting, self._retiring):
            if task is not None and not task.done():
                task.cancel()
                await asyncio.wait([task])
        if self._attached is not None:
            (running, value), self._attached = self._attached, None
            await self._kind.detach(value)
            await running.link.aclose()

    async def _start(self) -> tuple[Running, T]:
        """Join the process that is there; or start it, if nobody else is about to."""
        await asyncio.to_thread(explain.check_file, self._model)
        await asyncio.to_thread(self._kind.check)
        began, clock = time.time(), time.monotonic()
        try:
            setup = self._setup = await asyncio.to_thread(self._prepare)
        except OSError as exc:
            raise EngineUnavailableError(f"{exc.filename or self._model} cannot be read: {exc.strerror}.") from exc
        while True:
            # Anew each time: a temporary folder goes with the last file in it.
            place = await asyncio.to_thread(rendezvous.place, setup.key)
            found = await launch.join(place, self._recipe)
            if found is None:
                self._raise_if_too_early()
                found = await self._start_alone(setup, place, began)
            if found is not None:
                break
            await launch.pause(clock, self._recipe.timeout_s)
        attached = self._attached = await self._attach(found, setup)
        self._failure = None
        if found.child is not None and self._retires_others:
            self._retiring = asyncio.create_task(control.retire(place, self._recipe.note))
        return attached

    async def _attach(self, running: Running, setup: _Setup) -> tuple[Running, T]:
        """A start that ends here must leave no connection behind."""
        value: T | None = None
        try:
            value = await self._kind.attach(running, setup.fingerprint)
        except EngineError as exc:
            raise self._failed(exc, pause_s=self._pause_s()) from exc
        finally:
            if value is None:
                await running.link.aclose()
        return running, value

    def _prepare(self) -> _Setup:
        library, loopback = self._kind.library(), self._recipe.loopback
        options = self._kind.options(Attempt())
        key = identity.key(self._kind.name, options, command=self._recipe.command, build=library, loopback=loopback)
        name = verdict.key(self._model, gpu_layers=self._settings.gpu_layers, library=library)
        fingerprint = identity.fingerprint(self._kind.name, self._model, adapters=options.lora, kv_type=options.kv_type)
        return _Setup(key, name, fingerprint)

    async def _start_alone(self, setup: _Setup, place: Place, began: float) -> Running | None:
        """Start the process, unless somebody was faster; None: somebody else is at it."""
        try:
            lock = await launch.lock(place)
        except FileNotFoundError:
            return None  # the folder has just been taken away
        except OSError as exc:
            in_the_way = await asyncio.to_thread(rendezvous.in_the_way, place)
            error = explain.cannot_listen(exc.strerror or str(exc), number=exc.errno, in_the_way=in_the_way)
            raise self._failed(error, pause_s=self._pauses_s[-1]) from exc
        if lock is None:
            return None
        try:
            return await launch.join(place, self._recipe) or await self._descend(setup, place, began)
        finally:
            lock.release()

    async def _descend(self, setup: _Setup, place: Place, began: float) -> Running:
        """Go down the ladder until an attempt lives."""
        failure = await asyncio.to_thread(verdict.recall, setup.failure)
        if failure is not None and failure.at >= began:
            # What came out while we waited is our answer too.
            raise self._failed(EngineUnavailableError(failure.message, remedy=failure.remedy), pause_s=self._pauses_s[-1])
        await self._count_crash(setup, await asyncio.to_thread(registry.clear, place))
        known = await asyncio.to_thread(verdict.recall, setup.verdict)
        attempt, said = _first_attempt(known)
        first: Fall | None = None
        illegal = known is not None and known.is_illegal_instruction
        while True:
            outcome = await self._launch(place, attempt)
            if isinstance(outcome, Running):
                break
            logger.warning("The engine process %s (%s). %s", explain.how(outcome), attempt, outcome.last_words)
            first = first or outcome
            illegal = illegal or ladder.lacks_instruction(attempt, outcome)
            following = ladder.following(attempt, outcome, gpu_layers=self._settings.gpu_layers)
            if following is None and outcome.was_killed and self._n_failures < _MOST_KILLED_STARTS:
                raise self._failed(EngineBusyError(explain.restarted(explain.how(outcome))), pause_s=self._pause_s())
            if following is None:
                error = self._kind.unavailable(outcome)
                fallen = Verdict(attempt=None, at=time.time(), message=error.message, remedy=error.remedy)
                await asyncio.to_thread(verdict.remember, setup.failure, fallen)
                raise self._failed(error, pause_s=self._pauses_s[-1])
            attempt = following
        if (known is None or known.attempt != attempt) and not (first is not None and first.was_killed):
            lives = Verdict(attempt=attempt, at=time.time(), is_illegal_instruction=illegal)
            await asyncio.to_thread(verdict.remember, setup.verdict, lives)
        if first is not None:
            said = self._kind.fell_back(first, attempt)
        if said:
            self._notify(said)
        return outcome

    async def _launch(self, place: Place, attempt: Attempt) -> Running | Fall:
        options = await asyncio.to_thread(self._kind.options, attempt)
        try:
            return await launch.start(place, self._recipe, options, attempt)
        except EngineUnavailableError as exc:
            raise self._failed(exc, pause_s=self._pauses_s[-1]) from exc
        except OSError as exc:
            error = EngineUnavailableError(f"The engine process cannot be started: {exc.strerror}.")
            raise self._failed(error, pause_s=self._pauses_s[-1]) from exc

    async def _count_crash(self, setup: _Setup, note: Note | None) -> None:
        """A process that used the GPU left this note behind when it crashed."""
        if note is not None and note.is_loaded and note.on_gpu:
            await asyncio.to_thread(verdict.crashed, setup.verdict, note.attempt)

    def _pause_s(self) -> float:
        return self._pauses_s[min(self._n_failures, len(self._pauses_s) - 1)]

    def _failed(self, error: EngineError, *, pause_s: float) -> EngineError:
        """Note a failure; until its pause is over, asks get it again without another try."""
        self._n_failures += 1
        self._failure = error
        self._not_before = time.monotonic() + pause_s
        return error

    def _raise_if_too_early(self) -> None:
        left_s = self._not_before - time.monotonic()
        if self._failure is None or left_s <= 0:
            return
        if isinstance(self._failure, EngineBusyError):
            raise EngineBusyError(self._failure.message, retry_after_s=left_s)
        raise self._failure


def _first_attempt(known: Verdict | None) -> tuple[Attempt, str]:
    """What to try first, and what the user must know of it."""
    attempt = (known.attempt if known else None) or Attempt()
    lower = ladder.after_crashes(attempt, known.crashes if known else (), now=time.time())
    return (attempt, "") if lower is None else (lower, explain.stepped_down(lower))
