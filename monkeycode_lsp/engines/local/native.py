"""The native engine as the editor's server sees it: a process that owns the model and is shared.  Never imports llama_cpp.

The first ask finds the process of this model and these settings or starts it; after it died, the next one starts another, with
growing pauses.  Asks are put in order over there; closing a stream ends its generation there before the close returns.
Closing the engine leaves the process to others; it leaves by itself when nobody is left.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from pathlib import Path

import msgspec

from monkeycode_lsp import __version__
from monkeycode_lsp.config import Local
from monkeycode_lsp.domain import Chunk, Prompt
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.engines.local import (
    control,
    explain,
    identity,
    ladder,
    launch,
    registry,
    rendezvous,
    selftest,
    translate,
    verdict,
    wire,
)
from monkeycode_lsp.engines.local.ladder import Attempt, Fall
from monkeycode_lsp.engines.local.launch import WORKER, Recipe, Running
from monkeycode_lsp.engines.local.link import Answer, LinkLostError, Patience
from monkeycode_lsp.engines.local.options import load_options
from monkeycode_lsp.engines.local.registry import Note
from monkeycode_lsp.engines.local.rendezvous import Place
from monkeycode_lsp.engines.local.verdict import Verdict
from monkeycode_lsp.errors import ContextOverflowError, EngineBusyError, EngineError, EngineUnavailableError, StreamBrokenError

logger = logging.getLogger(__name__)

_PAUSES_S = (0.0, 1.0, 2.0, 5.0, 15.0, 30.0)
_BURIAL_S = 2.0
_MOST_KILLED_STARTS = 3
"""Whoever kills a process that loads has reasons of his own; when it is always so, it is the system, for want of memory."""


class _Setup(msgspec.Struct, frozen=True):
    """Under which names the process of these settings is found and things about it are remembered."""

    key: str
    verdict: str
    fingerprint: str

    @property
    def failure(self) -> str:
        """Under which name it is remembered that no attempt lived, for those who waited meanwhile."""
        return f"{self.verdict}.start"


class NativeEngine:
    """See `Engine`."""

    def __init__(
        self,
        *,
        settings: Local,
        model: Path,
        notify: Callable[[str], None],
        command: Sequence[str] | None = None,
        pauses_s: Sequence[float] = _PAUSES_S,
        load_timeout_s: float = 300.0,
        confirm_s: float = 5.0,
        give_up_s: float = 60.0,
        patience: Patience | None = None,
        loopback: bool = rendezvous.LOOPBACK,
    ) -> None:
        """`confirm_s`: when a cancel that is not confirmed is doubted; `give_up_s`: when a process that still answers pings is ended."""
        # The mutable state is the process that we are connected to, the tasks that look for it and that tell older ones,
        # and what the last failures forbid; it changes in `_up`, `_start` and `_bury` only.
        self._settings = settings
        self._model = model.expanduser().absolute()
        self._notify = notify
        self._command = command
        self._pauses_s = pauses_s
        self._confirm_s = confirm_s
        self._give_up_s = give_up_s
        self._patience = patience or Patience()
        self._recipe = Recipe(
            command=tuple(command or WORKER),
            note=Note(kind="native", model=str(self._model), version=__version__),
            linger_s=float(settings.linger_seconds),
            idle_s=settings.idle_minutes * 60.0,
            loopback=loopback,
            timeout_s=load_timeout_s,
            patience=self._patience,
        )
        self._running: tuple[Running, Model] | None = None
        self._starting: asyncio.Task[tuple[Running, Model]] | None = None
        self._retiring: asyncio.Task[None] | None = None
        self._burying = asyncio.Lock()
        self._setup: _Setup | None = None
        self._n_failures = 0
        self._failure: EngineError | None = None
        self._not_before = 0.0
        self._closed = False

    async def ready(self) -> Model:
        """See `Engine.ready`; waits while the model is loaded."""
        return (await self._up())[1]

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        """See `Engine.stream`."""
        for is_last in (False, True):
            running, _ = await self._up()
            answer = _ask(running, prompt)
            n_chunks = 0
            try:
                async with aclosing(answer.events()) as events:
                    async for event in events:
                        n_chunks += 1
                        yield translate.chunk(event)
            except LinkLostError:
                await self._bury(running)
            else:
                self._n_failures = 0
                return
            finally:
                await self._let_go(running, answer)
            # Nothing was said yet, so the next process may say it; unless it took very long already.
            if n_chunks or is_last or running.link.was_hung:
                raise StreamBrokenError("The engine process stopped in the middle of an answer.")

    async def aclose(self) -> None:
        """See `Engine.aclose`."""
        self._closed = True
        for task in (self._starting, self._retiring):
            if task is not None and not task.done():
                task.cancel()
                await asyncio.wait([task])
        if self._running is not None:
            (running, _), self._running = self._running, None
            await running.link.aclose()

    async def _up(self) -> tuple[Running, Model]:
        """The process that we are connected to; finds or starts it if there is none."""
        if self._closed:
            raise EngineUnavailableError("The engine has been closed.")
        if self._running is not None:
            if self._running[0].link.is_open:
                return self._running
            await self._bury(self._running[0])
        if self._starting is None or self._starting.done():
            self._starting = asyncio.create_task(self._start())
            # Whoever asked may have gone when it fails; then nobody else retrieves the error.
            self._starting.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(self._starting)

    async def _start(self) -> tuple[Running, Model]:
        """Join the process that is there; or start it, if nobody else is about to."""
        await asyncio.to_thread(explain.check_file, self._model)
        if self._command is None and not selftest.is_installed():
            raise explain.not_installed()
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
        # Nothing may come between: a start that ends here would leave a connection behind.
        running = self._running = (found, translate.model(found.ready, setup.fingerprint))
        self._failure = None
        if found.child is not None:
            self._retiring = asyncio.create_task(control.retire(place, self._recipe.note))
        return running

    def _prepare(self) -> _Setup:
        options = load_options(self._settings, self._model, Attempt())
        key = identity.key(
            "native", options, command=self._recipe.command, build=verdict.build(), loopback=self._recipe.loopback
        )  # fmt: skip
        name = verdict.key(self._model, gpu_layers=self._settings.gpu_layers)
        return _Setup(key, name, identity.fingerprint("native", self._model))

    async def _start_alone(self, setup: _Setup, place: Place, began: float) -> Running | None:
        """Start the process, unless somebody was faster; None: somebody else is at it."""
        try:
            lock = await launch.lock(place)
        except FileNotFoundError:
            return None  # the folder has just been taken away
        except OSError as exc:
            raise self._failed(explain.cannot_listen(exc.strerror or str(exc)), pause_s=self._pauses_s[-1]) from exc
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
        while True:
            outcome = await self._launch(place, attempt)
            if isinstance(outcome, Running):
                break
            logger.warning("The engine process %s (%s). %s", explain.how(outcome), attempt, outcome.last_words)
            first = first or outcome
            following = ladder.following(attempt, outcome, gpu_layers=self._settings.gpu_layers)
            if following is None and outcome.was_killed and self._n_failures < _MOST_KILLED_STARTS:
                raise self._failed(EngineBusyError(explain.restarted(explain.how(outcome))), pause_s=self._pause_s())
            if following is None:
                error = explain.unavailable(outcome, self._model)
                fallen = Verdict(attempt=None, at=time.time(), message=error.message, remedy=error.remedy)
                await asyncio.to_thread(verdict.remember, setup.failure, fallen)
                raise self._failed(error, pause_s=self._pauses_s[-1])
            attempt = following
        if (known is None or known.attempt != attempt) and not (first is not None and first.was_killed):
            await asyncio.to_thread(verdict.remember, setup.verdict, Verdict(attempt=attempt, at=time.time()))
        if first is not None:
            said = explain.fell_back(first, attempt)
        if said:
            self._notify(said)
        return outcome

    async def _launch(self, place: Place, attempt: Attempt) -> Running | Fall:
        options = await asyncio.to_thread(load_options, self._settings, self._model, attempt)
        try:
            return await launch.start(place, self._recipe, options, attempt)
        except EngineUnavailableError as exc:
            raise self._failed(exc, pause_s=self._pauses_s[-1]) from exc
        except OSError as exc:
            error = EngineUnavailableError(f"The engine process cannot be started: {exc.strerror}.")
            raise self._failed(error, pause_s=self._pauses_s[-1]) from exc

    async def _bury(self, running: Running) -> None:
        """Clear away after a process whose connection is lost; whoever else meets that meanwhile waits."""
        async with self._burying:
            is_news = self._running is not None and self._running[0] is running
            if is_news:
                self._running = None
            await running.link.aclose()
            if not is_news or running.link.has_left or self._setup is None:
                return
            status = await running.child.ended(timeout_s=_BURIAL_S) if running.child is not None else None
            how = explain.how(Fall(status)) if status is not None else "hung" if running.link.was_hung else "stopped unexpectedly"
            logger.warning("The engine process %s.", how)
            self._failed(EngineBusyError(explain.restarted(how)), pause_s=self._pause_s())
            await self._count_crash(self._setup, await launch.sweep(running.place))

    async def _count_crash(self, setup: _Setup, note: Note | None) -> None:
        """A process that used the GPU left this note behind when it crashed."""
        if note is not None and note.is_loaded and note.on_gpu:
            await asyncio.to_thread(verdict.crashed, setup.verdict, note.attempt)

    async def _let_go(self, running: Running, answer: Answer) -> None:
        """End a generation over there; a process that does not confirm it although it should is ended itself."""
        try:
            if await answer.stop(timeout_s=self._confirm_s):
                return
            is_there = await running.link.ping(timeout_s=self._patience.pong_s)
            if is_there and await answer.stop(timeout_s=self._give_up_s - self._confirm_s):
                return
        finally:
            running.link.forget(answer)
        running.link.kill()
        await self._bury(running)

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


def _ask(running: Running, prompt: Prompt) -> Answer:
    """Send a prompt.  Raises `ContextOverflowError` for one that fits no frame, and so no window."""
    try:
        return running.link.ask(lambda number: translate.generate(number, prompt))
    except wire.FrameError as exc:
        raise ContextOverflowError("The prompt is too long for any model.", limit_tokens=running.ready.context_tokens) from exc
