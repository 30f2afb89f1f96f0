"""The managed engine: a prebuilt llama-server that all windows share.  No compiler needed.

A host process (`managed_worker`) is found or started as for the native engine, and keeps one server: the xllamacpp package in a process
of its own, or a `llama-server` program.  The server listens on loopback only and answers nobody without a key that is made anew for
each start and known to the host's clients only.  Asks go there over HTTP; the host hears when they begin and how they end.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import importlib.util
import itertools
import logging
import os
import shutil
import sys
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Literal

import msgspec

from monkeycode_lsp import config
from monkeycode_lsp.domain import Chunk, Plain, Prompt
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.engines.local import explain, managed_health, rendezvous, wire
from monkeycode_lsp.engines.local.decoder import Options
from monkeycode_lsp.engines.local.ladder import Attempt, Fall
from monkeycode_lsp.engines.local.launch import Running
from monkeycode_lsp.engines.local.link import Link, Patience
from monkeycode_lsp.engines.local.managed_command import PYTHON, SERVER
from monkeycode_lsp.engines.local.managed_health import Trust
from monkeycode_lsp.engines.local.managed_process import About
from monkeycode_lsp.engines.local.options import load_options
from monkeycode_lsp.engines.local.tenant import PAUSES_S, Tenant
from monkeycode_lsp.engines.remote.endpoint import Endpoint, Limits
from monkeycode_lsp.errors import EngineUnavailableError, StreamBrokenError
from monkeycode_lsp.models import package_client

logger = logging.getLogger(__name__)

WORKER = (sys.executable, "-P", "-m", "monkeycode_lsp.engines.local.managed_worker")
_ABOUT_S = 60.0
_DEATH_S = 1.0
"""How long its host takes to follow a server that has died."""
_LEAVE_S = 5.0
_LIMITS = Limits(first_s=60.0, stall_s=30.0)
"""Generous: the server is ours and says how it gets on, and a busy machine is slow but not dead."""


def is_installed() -> bool:
    """Whether there is a server to start: the package, or a program.  Imports nothing."""
    return has_package() or find_program() is not None


def has_package() -> bool:
    """Whether xllamacpp is installed."""
    return importlib.util.find_spec("xllamacpp") is not None


def find_program() -> str | None:
    """The `llama-server` on PATH."""
    return shutil.which("llama-server")


class _Server(msgspec.Struct, frozen=True):
    """A server that answers."""

    endpoint: Endpoint
    model: Model


class _Managed:
    """See `Kind`."""

    name: Literal["native", "managed"] = "managed"

    def __init__(self, *, settings: config.Local, model: Path, notify: Callable[[str], None], program: str, limits: Limits) -> None:
        self.command: tuple[str, ...] = (*WORKER, f"--program={program}")
        self._settings = settings
        self._model = model
        self._notify = notify
        self._program = program
        self._limits = limits

    def check(self) -> None:
        """See `Kind.check`."""
        if not self._program and not has_package():
            raise _not_installed()

    def library(self) -> list[str]:
        """See `Kind.library`."""
        if self._program:
            with contextlib.suppress(OSError):
                stat = os.stat(self._program)  # noqa: PTH116 - a name from PATH or a setting
                return [self._program, str(stat.st_size), str(stat.st_mtime_ns)]
            return [self._program]
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return ["xllamacpp", importlib.metadata.version("xllamacpp")]
        return ["xllamacpp"]

    def options(self, attempt: Attempt) -> Options:
        """See `Kind.options`.  What no llama-server does makes no difference."""
        wanted = load_options(self._settings, self._model, attempt)
        return msgspec.structs.replace(wanted, drafts=False, draft_model="", state_folder="")

    async def attach(self, running: Running, fingerprint: str) -> _Server:
        """See `Kind.attach`."""
        serving = running.link.serving
        if serving is None:
            raise EngineUnavailableError("The engine process does not say where its server listens.")
        settings = config.Endpoint(url=serving.url, api="llama-server", api_key=serving.key)
        endpoint = Endpoint(settings, limits=self._limits, notify=self._notify, environ={})
        told: Model | None = None
        try:
            told = await endpoint.ready()
        finally:
            if told is None:
                await endpoint.aclose()
        name = f"{running.ready.name} {running.ready.quantization}".strip()
        return _Server(endpoint, msgspec.structs.replace(told, name=name, fingerprint=fingerprint))

    async def detach(self, attached: _Server) -> None:
        """See `Kind.detach`."""
        await attached.endpoint.aclose()

    def unavailable(self, fall: Fall) -> EngineUnavailableError:
        """See `Kind.unavailable`."""
        name = self._model.name
        if fall.failed is None:
            return EngineUnavailableError(
                f"The prebuilt engine cannot run {name}: its process {explain.how(fall)} while it loaded the model. {fall.last_words}".strip(),
                remedy="`monkeycode doctor` looks for the cause; memory may be short, or the build does not suit this processor.",
            )
        if fall.failed.kind == "runtime":
            remedy = f"Install it again: {package_client.install_line('prebuilt')}"
            return EngineUnavailableError(f"The prebuilt engine cannot be started: {fall.failed.message}", remedy=remedy)
        return EngineUnavailableError(
            f"The model file {self._model} cannot be loaded.",
            remedy="It may be damaged or of a newer format: `monkeycode model verify` checks it; `local.model` chooses another.",
        )

    def fell_back(self, first: Fall, attempt: Attempt) -> str:
        """See `Kind.fell_back`."""
        how = explain.how(first)
        if attempt.gpu_share == 0:
            way = "without the GPU, which is slower. To keep it so, set local.gpuLayers to 0"
        elif attempt.gpu_share < 1:
            way = "with half of its layers on the GPU, which is slower. A smaller model or a lower local.gpuLayers fits the GPU"
        else:
            way = "without extra CPU buffers, which is slower. `monkeycode engine install` builds one for this processor"
        return f"The engine process {how} while it loaded the model. It now runs {way}."


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
        program = server or ("" if has_package() else find_program() or "")
        kind = _Managed(settings=settings, model=path, notify=notify, program=program, limits=limits)
        self._tenant: Tenant[_Server] = Tenant(
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

    def _doubt_if_silent(self, running: Running, server: _Server) -> None:
        """The server has said nothing for long, however many asks it got: then it is asked whether it is well."""
        is_silent = self._silent_since is not None and time.monotonic() - self._silent_since >= self._trust.silent_s
        if is_silent and self._tenant.running is running and (self._doubting is None or self._doubting.done()):
            self._doubting = asyncio.create_task(self._doubt(running, server))

    async def _doubt(self, running: Running, server: _Server) -> None:
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


def _not_installed() -> EngineUnavailableError:
    return EngineUnavailableError(
        "The prebuilt local engine is not installed.", remedy=f"Install it: {package_client.install_line('prebuilt')}"
    )


async def about() -> About:
    """Version, build and devices of the installed library, found out in a throw-away process."""
    if not is_installed():
        raise _not_installed()
    pipe, devnull = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*PYTHON, SERVER, "about", stdin=devnull, stdout=pipe, stderr=devnull)
    try:
        output, _ = await asyncio.wait_for(process.communicate(), _ABOUT_S)
        return msgspec.json.decode(output.splitlines()[-1], type=About)
    except (TimeoutError, IndexError, msgspec.DecodeError) as exc:
        raise EngineUnavailableError("The prebuilt local engine does not run on this machine.", remedy="Reinstall xllamacpp.") from exc
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


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
