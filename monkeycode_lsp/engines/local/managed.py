"""The managed engine: a prebuilt llama-server on a private port of this machine.  No compiler needed.

The server is either the xllamacpp package in a process of its own or a `llama-server` program.  It
listens on loopback only, on a port that the system chooses, and answers nobody without a key that is
made anew for each start.  It never outlives us.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import os
import secrets
import shutil
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path

import msgspec

from monkeycode_lsp import config
from monkeycode_lsp.domain import Chunk, Plain, Prompt
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.engines.local import managed_server
from monkeycode_lsp.engines.local.child import PATIENT
from monkeycode_lsp.engines.local.managed_child import KEEPER, PYTHON, ManagedChild
from monkeycode_lsp.engines.remote.backoff import Backoff
from monkeycode_lsp.engines.remote.endpoint import Endpoint, Limits
from monkeycode_lsp.errors import EngineError, EngineUnavailableError, StreamBrokenError
from monkeycode_lsp.models import package_client

logger = logging.getLogger(__name__)

LOAD_S = 180.0
"""Longest wait for a model; large ones come from slow disks."""
POLL_S = 0.1
STABLE_S = 60.0
"""Who lives so long and dies then had no trouble starting: its next start needs no pause."""
LONGEST_PAUSE_S = 60.0
ABOUT_S = 60.0
SILENT_S = 5.0
"""A server that has said nothing for so long when its caller leaves is asked whether it is well."""
HUNG_S = 10.0
"""One that does not answer that within this time hangs, and is started anew."""

_LIMITS = Limits(first_s=60.0, stall_s=30.0)
"""Generous: the server is ours and says how it gets on, and a busy machine is slow but not dead."""


class Build(msgspec.Struct, frozen=True):
    """What the installed library says of itself."""

    version: str
    build: str
    system: str
    devices: tuple[str, ...] = ()


class _Running(msgspec.Struct, frozen=True):
    child: ManagedChild
    endpoint: Endpoint
    model: Model
    since: float


def is_installed() -> bool:
    """Whether there is a server to start: the package, or a program.  Imports nothing."""
    return has_package() or find_program() is not None


def has_package() -> bool:
    """Whether xllamacpp is installed."""
    return importlib.util.find_spec("xllamacpp") is not None


def find_program() -> str | None:
    """The `llama-server` on PATH."""
    return shutil.which("llama-server")


class ManagedEngine:
    """One model in one server process: `server`, a llama-server program, else the package, else the program on PATH.

    The mutable state is the running server, the tasks that start one and look whether one hangs, and the pause after failures.
    """

    def __init__(self, *, settings: config.Local, model: Path, notify: Callable[[str], None], server: str | None = None) -> None:
        self._settings = settings
        self._path = model
        self._notify = notify
        self._server = server or (None if has_package() else find_program())
        self._gpu_layers = settings.gpu_layers
        self._running: _Running | None = None
        self._starting: asyncio.Task[_Running] | None = None
        self._doubting: asyncio.Task[None] | None = None
        self._backoff = Backoff(time.monotonic, first_s=0.5, longest_s=LONGEST_PAUSE_S)

    @property
    def pid(self) -> int | None:
        """The keeper's process id, which is also the group of it and its server."""
        return self._running.child.pid if self._running else None

    async def ready(self) -> Model:
        """See `Engine.ready`.  Waits while the model loads; a caller that leaves does not stop the loading."""
        return (await self._alive()).model

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        """See `Engine.stream`."""
        running = await self._alive()
        silent_since: float | None = time.monotonic()
        try:
            async with aclosing(running.endpoint.stream(prompt)) as chunks:
                async for chunk in chunks:
                    silent_since = None
                    yield chunk
        except EngineError as exc:
            if await running.child.over(POLL_S):
                raise StreamBrokenError(f"The local engine died ({running.child.died_of}) in the middle of an answer.") from exc
            raise
        finally:
            is_ours = self._running is running and self._doubting is None
            if is_ours and silent_since is not None and time.monotonic() - silent_since > SILENT_S:
                self._doubting = asyncio.create_task(self._end_if_hung(running))

    async def aclose(self) -> None:
        """See `Engine.aclose`."""
        for task in (self._starting, self._doubting):
            if task is not None and not task.done():
                task.cancel()
                await asyncio.wait({task})
        self._starting = self._doubting = None
        running, self._running = self._running, None
        if running is not None:
            await running.endpoint.aclose()
            await running.child.stop()

    async def _alive(self) -> _Running:
        if self._running is not None and self._running.child.alive:
            return self._running
        if self._starting is None:
            self._starting = asyncio.create_task(self._restart())
            self._starting.add_done_callback(_noted)
        starting = self._starting
        await asyncio.wait({starting})
        if starting.cancelled():
            raise EngineUnavailableError("The local engine was closed.")
        return starting.result()

    async def _restart(self) -> _Running:
        try:
            await self._bury()
            self._backoff.check()
            try:
                self._running = await self._start_with_fallback()
            except EngineError as exc:
                self._backoff.failed(exc)
                raise
            return self._running
        finally:
            self._starting = None

    async def _end_if_hung(self, running: _Running) -> None:
        try:
            async with asyncio.timeout(HUNG_S):
                await running.endpoint.healthy()
        except TimeoutError:
            logger.warning("The local engine does not answer; it is stopped.")
            await running.child.stop()
        except EngineError:
            pass  # it has ended, which the next ask sees
        finally:
            self._doubting = None

    async def _bury(self) -> None:
        """Clean up after a server that has died."""
        dead, self._running = self._running, None
        if dead is None:
            return
        if time.monotonic() - dead.since > STABLE_S:
            self._backoff.succeeded()
        self._backoff.failed(
            EngineUnavailableError(f"The local engine died ({dead.child.died_of}).", remedy="It is started again in a while.")
        )
        await dead.endpoint.aclose()
        await dead.child.stop()

    async def _start_with_fallback(self) -> _Running:
        try:
            return await self._start()
        except _CrashedError:
            if self._gpu_layers == 0:
                raise
        self._gpu_layers = 0
        running = await self._start()
        self._notify(
            "The local engine crashed while it loaded the model; it now runs without the GPU. To keep it so, set `local.gpuLayers` to 0."
        )
        return running

    async def _start(self) -> _Running:
        self._check_file()
        key = secrets.token_urlsafe(32)
        try:
            child = await ManagedChild.start(self._command(), environ={**PATIENT, **os.environ, managed_server.KEY_VARIABLE: key})
        except OSError as exc:
            raise EngineUnavailableError("The local engine's process cannot be started.", remedy="Is memory short?") from exc
        endpoint: Endpoint | None = None
        try:
            async with asyncio.timeout(LOAD_S):
                endpoint = await self._connect(child, key)
                told = await endpoint.ready()
        except BaseException as exc:  # whatever happened, the process must not stay behind
            if endpoint is not None:
                await endpoint.aclose()
            await child.stop()
            if isinstance(exc, TimeoutError):
                raise EngineUnavailableError(
                    f"The model {self._path.name} was not loaded within {LOAD_S:g} seconds.",
                    remedy="Choose a smaller one in `local.model`.",
                ) from exc
            raise
        size = self._path.stat()
        model = Model(self._path.name, told.family, f"managed:{self._path.name}:{size.st_size}:{size.st_mtime_ns}", told.context_tokens)
        return _Running(child, endpoint, model, time.monotonic())

    async def _connect(self, child: ManagedChild, key: str) -> Endpoint:
        url = await child.address()
        if url is None:
            raise self._died(child)
        settings = config.Endpoint(url=url, api="llama-server", api_key=key)
        endpoint = Endpoint(settings, limits=_LIMITS, notify=self._notify, environ={})
        while child.alive:
            with contextlib.suppress(EngineError):  # it listens a moment later than it says
                if await endpoint.healthy():
                    return endpoint
            await child.over(POLL_S)
        await endpoint.aclose()
        raise self._died(child)

    def _command(self) -> list[str]:
        options = {
            "model": str(self._path),
            "slots": self._settings.slots,
            "context_tokens": self._settings.context_tokens,
            "gpu_layers": self._gpu_layers,
            "threads": self._settings.threads,
            "flash_attention": self._settings.flash_attention,
            "mmap": self._settings.mmap,
        }
        if self._server is not None:
            return managed_server.llama_server(self._server, options)
        return [*PYTHON, KEEPER, "serve", msgspec.json.encode(options).decode()]

    def _check_file(self) -> None:
        remedy = "Set `local.model` to a GGUF file or to a name that `monkeycode model list` shows."
        if self._path.is_dir():
            raise EngineUnavailableError(f"The model {self._path} is a folder, not a file.", remedy=remedy)
        if not self._path.is_file():
            raise EngineUnavailableError(f"The model file {self._path} does not exist.", remedy=remedy)
        if self._server is None and not has_package():
            raise _not_installed()

    def _died(self, child: ManagedChild) -> EngineUnavailableError:
        if child.crashed:
            return _CrashedError(
                f"The local engine crashed ({child.died_of}) while it loaded {self._path.name}.",
                remedy="`monkeycode doctor` looks for the cause; memory may be short, or the build does not suit this processor.",
            )
        return EngineUnavailableError(
            f"The model file {self._path} cannot be loaded.",
            remedy="It may be damaged or of a newer format: `monkeycode model verify` checks it; `local.model` chooses another.",
        )


class _CrashedError(EngineUnavailableError):
    """A signal killed it."""


def _not_installed() -> EngineUnavailableError:
    return EngineUnavailableError(
        "The prebuilt local engine is not installed.", remedy=f"Install it: {package_client.install_line('prebuilt')}"
    )


def _noted(task: asyncio.Task[_Running]) -> None:
    """Everybody who waited may have gone; asyncio would log an error that nobody looked at."""
    if not task.cancelled():
        task.exception()


async def about() -> Build:
    """Version, build and devices of the installed library, found out in a throw-away process."""
    if not is_installed():
        raise _not_installed()
    pipe, devnull = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*PYTHON, KEEPER, "about", stdin=devnull, stdout=pipe, stderr=devnull)
    try:
        output, _ = await asyncio.wait_for(process.communicate(), ABOUT_S)
        return msgspec.json.decode(output.splitlines()[-1], type=Build)
    except (TimeoutError, IndexError, msgspec.DecodeError) as exc:
        raise EngineUnavailableError("The prebuilt local engine does not run on this machine.", remedy="Reinstall xllamacpp.") from exc
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def self_test(*, settings: config.Local, model: Path, server: str | None = None) -> Model:
    """Load the model and generate one token in a throw-away server.  Raises an `EngineError` that says what is wrong."""
    engine = ManagedEngine(settings=settings, model=model, notify=lambda _: None, server=server)
    try:
        found = await engine.ready()
        prompt = Prompt(segments=(Plain("def "),), prefix="def ", suffix="", max_tokens=1, fim=False)
        async with aclosing(engine.stream(prompt)) as chunks:
            async for _ in chunks:
                pass
    finally:
        await engine.aclose()
    return found
