"""The native engine as the editor's server sees it: a child process that owns the model.  Never imports llama_cpp.

The child is started by the first ask and again after it died, with growing pauses.  Asks are put in
order by the child; closing a stream ends its generation there before the close returns.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from pathlib import Path

from monkeycode_lsp.config import Local
from monkeycode_lsp.domain import Chunk, Finish, Prompt, Usage
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.engines.local import explain, ladder, rendezvous, selftest, verdict, wire
from monkeycode_lsp.engines.local.ladder import Attempt, Fall
from monkeycode_lsp.engines.local.launch import WORKER, Running, launch
from monkeycode_lsp.engines.local.link import Answer, LinkLostError
from monkeycode_lsp.engines.local.verdict import Verdict
from monkeycode_lsp.errors import (
    ContextOverflowError,
    EngineBusyError,
    EngineError,
    EngineRefusedError,
    EngineUnavailableError,
    StreamBrokenError,
)
from monkeycode_lsp.prompt import by_vocabulary

logger = logging.getLogger(__name__)

_PAUSES_S = (0.0, 1.0, 2.0, 5.0, 15.0, 30.0)
_FINGERPRINT_BYTES = 65_536


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
        loopback: bool = rendezvous.LOOPBACK,
    ) -> None:
        # The mutable state is the running child, the task that starts it, and what the last failures
        # forbid; it changes in `_up`, `_start` and `_bury` only.
        self._settings = settings
        self._model = model.expanduser().absolute()
        self._notify = notify
        self._command = command
        self._pauses_s = pauses_s
        self._load_timeout_s = load_timeout_s
        self._confirm_s = confirm_s
        self._loopback = loopback
        self._running: tuple[Running, Model] | None = None
        self._starting: asyncio.Task[tuple[Running, Model]] | None = None
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
                        yield _chunk(event)
            except LinkLostError:
                was_at_work = await self._bury(running)
            else:
                self._n_failures = 0
                return
            finally:
                await self._let_go(running, answer)
            # A process that had just left for want of work is no failure: the next one answers.
            if was_at_work or n_chunks or is_last:
                raise StreamBrokenError("The engine process stopped in the middle of an answer.")

    async def aclose(self) -> None:
        """See `Engine.aclose`."""
        self._closed = True
        if self._starting is not None and not self._starting.done():
            self._starting.cancel()
            await asyncio.wait([self._starting])
        if self._running is not None:
            (running, _), self._running = self._running, None
            await running.stop()

    async def _up(self) -> tuple[Running, Model]:
        """The running child; starts it if there is none."""
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
        """Go down the ladder until an attempt lives."""
        await asyncio.to_thread(explain.check_file, self._model)
        if self._command is None and not selftest.is_installed():
            raise explain.not_installed()
        self._raise_if_too_early()
        name = await asyncio.to_thread(verdict.key, self._model, gpu_layers=self._settings.gpu_layers)
        fingerprint = await asyncio.to_thread(_fingerprint, self._model)
        known = await asyncio.to_thread(verdict.recall, name)
        attempt = (known.attempt if known else None) or Attempt()
        first: Fall | None = None
        while True:
            outcome = await self._launch(attempt)
            if isinstance(outcome, Running):
                break
            logger.warning("The engine process %s (%s). %s", explain.how(outcome), attempt, outcome.last_words)
            first = first or outcome
            following = ladder.following(attempt, outcome, gpu_layers=self._settings.gpu_layers)
            if following is None:
                raise self._failed(explain.unavailable(outcome, self._model), pause_s=self._pauses_s[-1])
            attempt = following
        # Nothing may come between the launch and this: a start that ends here would leave the process behind.
        running = self._running = (outcome, _model(outcome.ready, fingerprint))
        self._failure = None
        if known is None or known.attempt != attempt:
            await asyncio.to_thread(verdict.remember, name, Verdict(attempt=attempt, at=time.time()))
        if first is not None:
            self._notify(explain.fell_back(first, attempt))
        return running

    async def _launch(self, attempt: Attempt) -> Running | Fall:
        command = [*(self._command or WORKER), *ladder.arguments(self._settings, self._model, attempt)]
        idle_s = self._settings.idle_minutes * 60.0
        try:
            return await launch(command, idle_s=idle_s, timeout_s=self._load_timeout_s, loopback=self._loopback)
        except OSError as exc:
            error = EngineUnavailableError(f"The engine process cannot be started: {exc.strerror}.")
            raise self._failed(error, pause_s=self._pauses_s[-1]) from exc

    async def _bury(self, running: Running) -> bool:
        """Clear away a child whose connection is lost.  False: it had left in peace."""
        is_news = self._running is not None and self._running[0] is running
        if is_news:
            self._running = None
        status = await running.stop()
        if status and is_news:
            fall = Fall(status)
            logger.warning("The engine process %s. %s", explain.how(fall), running.child.last_words)
            pause_s = self._pauses_s[min(self._n_failures, len(self._pauses_s) - 1)]
            self._failed(EngineBusyError(f"The engine process {explain.how(fall)}; it is started again soon."), pause_s=pause_s)
        return status != 0

    async def _let_go(self, running: Running, answer: Answer) -> None:
        """End a generation in the child; a child that does not confirm it is ended itself."""
        try:
            confirmed = await answer.stop(timeout_s=self._confirm_s)
        finally:
            running.link.forget(answer)
        if not confirmed:
            logger.warning("The engine process does not answer; it is stopped.")
            await running.child.kill()
            await self._bury(running)

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


def _model(ready: wire.Ready, fingerprint: str) -> Model:
    return Model(
        name=f"{ready.name} {ready.quantization}".strip(),
        family=by_vocabulary(ready.markers, architecture=ready.architecture, name=ready.name),
        fingerprint=fingerprint,
        context_tokens=ready.context_tokens,
    )


def _ask(running: Running, prompt: Prompt) -> Answer:
    """Send a prompt.  Raises `ContextOverflowError` for one that fits no frame, and so no window."""
    try:
        return running.link.ask(lambda number: _generate(number, prompt))
    except wire.FrameError as exc:
        raise ContextOverflowError("The prompt is too long for any model.", limit_tokens=running.ready.context_tokens) from exc


def _generate(number: int, prompt: Prompt) -> wire.Generate:
    return wire.Generate(
        id=number,
        segments=prompt.segments,
        max_tokens=prompt.max_tokens,
        temperature=prompt.temperature,
        stop=prompt.stop,
        draft=prompt.draft,
        priority=prompt.priority,
        session=prompt.session,
    )


def _chunk(event: wire.Delta | wire.Done | wire.Failed) -> Chunk:
    """The chunk for an event.  Raises an `EngineError` for a failed answer."""
    match event:
        case wire.Delta():
            usage = None if event.read is None else Usage(reused=event.reused, read=event.read)
            return Chunk(text=event.text, logprob=event.logprob, n_tokens=event.n_tokens, usage=usage)
        case wire.Done():
            finish = Finish.STOP if event.finish == "stop" else Finish.LENGTH
            return Chunk(text="", finish=finish, usage=Usage(reused=event.reused, read=event.read, generated=event.generated))
        case wire.Failed(kind="overflow"):
            raise ContextOverflowError(
                event.message, limit_tokens=event.limit_tokens, remedy="Raise local.contextTokens or lower context.prefixTokens."
            )
        case wire.Failed(kind="template"):
            raise EngineRefusedError(event.message, remedy="Set template to the model's family, or to auto.")
        case wire.Failed(kind="busy"):
            raise EngineBusyError(event.message)
        case wire.Failed():
            raise StreamBrokenError(event.message)


def _fingerprint(model: Path) -> str:
    """Names a model file by its size, head and tail, wherever it lies."""
    with model.open("rb") as file:
        size = file.seek(0, 2)
        digest = hashlib.sha256(str(size).encode())
        for start in (0, max(0, size - _FINGERPRINT_BYTES)):
            file.seek(start)
            digest.update(file.read(_FINGERPRINT_BYTES))
    return f"native:{digest.hexdigest()[:16]}"
