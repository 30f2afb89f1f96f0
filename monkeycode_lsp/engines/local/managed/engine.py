"""The managed engine: a prebuilt llama-server that all windows share.  No compiler needed.

A host process (`managed_worker`) is found or started as for the native engine, and keeps one server: the xllamacpp package in a process
of its own, or a `llama-server` program.  The server listens on loopback only and answers nobody without a key that is made anew for
each start and known to the host's clients only.  Asks go there over HTTP; the host hears when they begin and how they end.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from pathlib import Path

import msgspec

from monkeycode_lsp import config
from monkeycode_lsp.domain import Chunk, Plain, Prompt
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.engines.local import wire
from monkeycode_lsp.engines.local.host import rendezvous
from monkeycode_lsp.engines.local.host.launch import Running
from monkeycode_lsp.engines.local.host.link import Link, Patience
from monkeycode_lsp.engines.local.host.tenant import PAUSES_S, Tenant
from monkeycode_lsp.engines.local.managed import health as managed_health
from monkeycode_lsp.engines.local.managed import library as managed_library
from monkeycode_lsp.engines.local.managed.health import Trust
from monkeycode_lsp.engines.local.managed.kind import Managed, Reached
from monkeycode_lsp.engines.remote.stream.reading import Limits
from monkeycode_lsp.errors import EngineUnavailableError, StreamBrokenError

logger = logging.getLogger(__name__)

_DEATH_S = 1.0
"""How long its host takes to follow a server that has died."""
_LEAVE_S = 5.0
_LIMITS = Limits(first_s=60.0, stall_s=30.0)
"""Generous: the server is ours and says how it gets on, and a busy machine is slow but not dead."""


class ManagedEngine:
    """See `Engine`.  `server`: a llama-server program; empty: the package, else the program on PATH."""

    def __init__(
        self,
        *,
        settings: config.Local,
        model: Path,
        notify: Callable[[str], None],
        server: str | None = None,
        pauses_s: Sequence[float] = PAUSES_S,
        load_timeout_s: float = 300.0,
        trust: Trust | None = None,
        limits: Limits = _LIMITS,
        patience: Patience | None = None,
        loopback: bool = rendezvous.LOOPBACK,
        retires_others: bool = True,
    ) -> None:
        # The mutable state is since when asks have got nothing from the server, and the task that asks whether it hangs;
        # both change in `stream` and `_doubt` only.
        path = model.expanduser().absolute()
        program = server or ("" if managed_library.has_package() else managed_library.find_program() or "")
        kind = Managed(settings=settings, model=path, notify=notify, program=program, limits=limits)
        self._tenant: Tenant[Reached] = Tenant(
            kind,
            settings=settings,
            model=path,
            notify=notify,
            pauses_s=pauses_s,
            load_timeout_s=load_timeout_s,
            patience=patience,
            loopback=loopback,
            retires_others=retires_others,
        )
        self._trust = trust or Trust()
        self._numbers = itertools.count(1)
        self._silent_since: float | None = None
        self._doubting: asyncio.Task[None] | None = None

    async def ready(self) -> Model:
        """See `Engine.ready`; waits while the model is loaded."""
        return (await self._tenant.up())[1].model

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        """See `Engine.stream`."""
        for is_last in (False, True):
            running, server = await self._tenant.up()
            ask = _Ask(running.link, next(self._numbers))
            if self._silent_since is None:
                self._silent_since = time.monotonic()
            try:
                async with aclosing(server.endpoint.stream(prompt)) as chunks:
                    async for chunk in chunks:
                        self._silent_since = None
                        ask.hears(chunk)
                        yield chunk
            except (EngineUnavailableError, StreamBrokenError) as exc:
                if not await _has_ended(running.link):
                    self._silent_since = self._silent_since or time.monotonic() - self._trust.silent_s
                    raise StreamBrokenError("The local engine did not go on with its answer.") from exc
                await self._tenant.bury(running)
            else:
                self._tenant.works()
                return
            finally:
                ask.ends()
                self._doubt_if_silent(running, server)
            # Nothing was said yet, so the next process may say it.
            if ask.has_text or is_last:
                raise StreamBrokenError("The engine process stopped in the middle of an answer.")

    async def aclose(self) -> None:
        """See `Engine.aclose`."""
        if self._doubting is not None:
            self._doubting.cancel()
            await asyncio.wait([self._doubting])
        await self._tenant.aclose()

    def _doubt_if_silent(self, running: Running, server: Reached) -> None:
        """The server has said nothing for long, however many asks it got: then it is asked whether it is well."""
        is_silent = self._silent_since is not None and time.monotonic() - self._silent_since >= self._trust.silent_s
        if is_silent and self._tenant.running is running and (self._doubting is None or self._doubting.done()):
            self._doubting = asyncio.create_task(self._doubt(running, server))

    async def _doubt(self, running: Running, server: Reached) -> None:
        if await managed_health.is_well(server.endpoint, self._trust):
            self._silent_since = None
            return
        logger.warning("The local engine does not get on; it is stopped.")
        running.link.send(wire.Shutdown())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_S):
                await running.link.ended()
        if running.link.is_open:
            running.link.kill()
        self._silent_since = None
        await self._tenant.bury(running, hung=True)


class _Ask:
    """One ask, as its host hears of it."""

    def __init__(self, link: Link, number: int) -> None:
        # The mutable state is what came, noted in `hears`.
        self._link = link
        self._number = number
        self._last: Chunk | None = None
        self._n_tokens = 0
        self.has_text = False
        self._usage = wire.Ended(number)
        link.send(wire.Began(number))

    def hears(self, chunk: Chunk) -> None:
        """The next chunk has come."""
        self.has_text = True
        self._last = chunk
        self._n_tokens += chunk.n_tokens
        if (usage := chunk.usage) is not None:
            self._usage = wire.Ended(self._number, reused=usage.reused or 0, read=usage.read or 0, generated=usage.generated or 0)

    def ends(self) -> None:
        """It is over, whole or not."""
        is_whole = self._last is not None and self._last.finish is not None
        generated = self._usage.generated or self._n_tokens
        self._link.send(msgspec.structs.replace(self._usage, generated=generated, cancelled=not is_whole))


async def _has_ended(link: Link) -> bool:
    """Whether the host leaves, or follows its server."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DEATH_S):
            await link.ended()
    return not link.is_open


async def self_test(*, settings: config.Local, model: Path, server: str | None = None) -> Model:
    """Load the model and generate one token; a server that runs already with these settings proves as much.

    Raises an `EngineError` that says what is wrong.
    """
    alone = msgspec.structs.replace(settings, linger_seconds=0)
    engine = ManagedEngine(settings=alone, model=model, notify=lambda _: None, server=server, retires_others=False)
    try:
        found = await engine.ready()
        prompt = Prompt(segments=(Plain("def "),), prefix="def ", suffix="", max_tokens=1, fim=False)
        async with aclosing(engine.stream(prompt)) as chunks:
            async for _ in chunks:
                pass
    finally:
        await engine.aclose()
    return found
