"""The native engine as the editor's server sees it: a process that owns the model and is shared.  Never imports llama_cpp.

The process of this model and these settings is found or started by `tenant`.  Asks are put in order over there; closing a stream
ends its generation there before the close returns.  Closing the engine leaves the process to others; it leaves by itself when nobody
is left.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Literal

from monkeycode_lsp.config import Local
from monkeycode_lsp.domain import Chunk, Prompt
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.engines.local import explain, selftest, translate, verdict, wire
from monkeycode_lsp.engines.local.decoder import Options
from monkeycode_lsp.engines.local.host import rendezvous
from monkeycode_lsp.engines.local.host.launch import WORKER, Running
from monkeycode_lsp.engines.local.host.link import Answer, LinkLostError, Patience
from monkeycode_lsp.engines.local.host.tenant import PAUSES_S, Tenant
from monkeycode_lsp.engines.local.ladder import Attempt, Fall
from monkeycode_lsp.engines.local.options import load_options
from monkeycode_lsp.errors import ContextOverflowError, EngineRefusedError, EngineUnavailableError, StreamBrokenError

_COUNT_S = 5.0
"""Nobody waits for it; it only must come to an end."""


class _Native:
    """See `Kind`."""

    name: Literal["native", "managed"] = "native"

    def __init__(self, *, settings: Local, model: Path, command: Sequence[str] | None) -> None:
        self.command: tuple[str, ...] = tuple(command or WORKER)
        self._is_ours = command is None
        self._settings = settings
        self._model = model

    def check(self) -> None:
        """See `Kind.check`."""
        if self._is_ours and not selftest.is_installed():
            raise explain.not_installed()

    def library(self) -> list[str]:
        """See `Kind.library`."""
        return verdict.build()

    def options(self, attempt: Attempt) -> Options:
        """See `Kind.options`."""
        return load_options(self._settings, self._model, attempt)

    async def attach(self, running: Running, fingerprint: str) -> Model:
        """See `Kind.attach`."""
        return translate.model(running.ready, fingerprint)

    async def detach(self, attached: Model) -> None:
        """See `Kind.detach`."""

    def unavailable(self, fall: Fall) -> EngineUnavailableError:
        """See `Kind.unavailable`."""
        return explain.unavailable(fall, self._model)

    def fell_back(self, first: Fall, attempt: Attempt) -> str:
        """See `Kind.fell_back`."""
        return explain.fell_back(first, attempt)


class NativeEngine:
    """See `Engine`."""

    def __init__(
        self,
        *,
        settings: Local,
        model: Path,
        notify: Callable[[str], None],
        command: Sequence[str] | None = None,
        pauses_s: Sequence[float] = PAUSES_S,
        load_timeout_s: float = 300.0,
        confirm_s: float = 5.0,
        give_up_s: float = 60.0,
        patience: Patience | None = None,
        loopback: bool = rendezvous.LOOPBACK,
    ) -> None:
        """`confirm_s`: when a cancel that is not confirmed is doubted; `give_up_s`: when a process that still answers pings is ended."""
        path = model.expanduser().absolute()
        self._confirm_s = confirm_s
        self._give_up_s = give_up_s
        self._patience = patience or Patience()
        self._tenant: Tenant[Model] = Tenant(
            _Native(settings=settings, model=path, command=command),
            settings=settings,
            model=path,
            notify=notify,
            pauses_s=pauses_s,
            load_timeout_s=load_timeout_s,
            patience=self._patience,
            loopback=loopback,
        )

    async def ready(self) -> Model:
        """See `Engine.ready`; waits while the model is loaded."""
        return (await self._tenant.up())[1]

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        """See `Engine.stream`."""
        for is_last in (False, True):
            running, _ = await self._tenant.up()
            answer = _ask(running, prompt)
            n_chunks = 0
            try:
                async with aclosing(answer.events()) as events:
                    async for event in events:
                        n_chunks += 1
                        yield translate.chunk(event)
            except LinkLostError:
                await self._tenant.bury(running)
            else:
                self._tenant.works()
                return
            finally:
                await self._let_go(running, answer)
            # Nothing was said yet, so the next process may say it; unless it took very long already.
            if n_chunks or is_last or running.link.was_hung:
                raise StreamBrokenError("The engine process stopped in the middle of an answer.")

    async def count(self, texts: Sequence[str]) -> list[int] | None:
        """See `Counting`.  Starts no process for it."""
        running = self._tenant.running
        if running is None or not running.link.is_open:
            return None
        try:
            return await running.link.count(texts, timeout_s=_COUNT_S)
        except wire.FrameError:
            return None

    async def aclose(self) -> None:
        """See `Engine.aclose`."""
        await self._tenant.aclose()

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
        await self._tenant.bury(running)


def _ask(running: Running, prompt: Prompt) -> Answer:
    """Send a prompt.  Raises `ContextOverflowError` for one that fits no frame, and so no window."""
    try:
        return running.link.ask(lambda number: translate.generate(number, prompt))
    except wire.FrameTooLongError as exc:
        raise ContextOverflowError("The prompt is too long for any model.", limit_tokens=running.ready.context_tokens) from exc
    except wire.FrameError as exc:
        raise EngineRefusedError(f"The prompt cannot be sent to the engine: {exc}.") from exc
