"""What the engine is compared with: llama-cpp-python called directly, and a llama-server.  Each in a process of its own."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import httpx
import msgspec

from monkeycode_lsp.bench.engine_report import DIRECT, SERVER, Answer
from monkeycode_lsp.config import Local
from monkeycode_lsp.domain import Prompt
from monkeycode_lsp.engines.local import hardware
from monkeycode_lsp.engines.local.host.child import PATIENT
from monkeycode_lsp.errors import EngineUnavailableError
from monkeycode_lsp.prompt import as_text

_END_S = 5.0
_ANSWER_S = 300.0
_LONGEST_LINE = 16 * 1024 * 1024
_POLL_S = 0.1


class MissingError(EngineUnavailableError):
    """A competitor is not here, or not any more; the message is why."""


class Timings(msgspec.Struct, frozen=True):
    """Of llama-server's last event."""

    cache_n: int = 0
    prompt_n: int = 0
    predicted_n: int = 0


class Event(msgspec.Struct, frozen=True):
    """One event of llama-server's stream, as far as we need it."""

    content: str = ""
    prompt_progress: dict[str, Any] | None = None
    timings: Timings | None = None


class Process(NamedTuple):
    """A child that talks in lines of JSON."""

    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader

    @classmethod
    @asynccontextmanager
    async def running(cls, module: str, settings: Local, model: Path) -> AsyncIterator[Self]:
        """Started with these settings, and with our engine's patience of threads; gone with the block."""
        options = msgspec.to_builtins(settings) | {
            "model": str(model),
            "threads": settings.threads or hardware.physical_cores(),
            "context_tokens": settings.context_tokens,
            "gpu_layers": settings.gpu_layers,
            "flash_attention": settings.flash_attention,
        }
        pipe = asyncio.subprocess.PIPE
        command = (sys.executable, "-P", "-m", f"monkeycode_lsp.bench.{module}", json.dumps(options))
        child = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL, limit=_LONGEST_LINE, env={**PATIENT, **os.environ}
        )
        assert child.stdin is not None  # noqa: S101 - made above
        assert child.stdout is not None  # noqa: S101 - made above
        try:
            yield cls(child.stdin, child.stdout)
        finally:
            child.stdin.close()
            try:
                async with asyncio.timeout(_END_S):
                    await child.wait()
            except TimeoutError:
                child.kill()
                await child.wait()

    async def line(self) -> Any:
        """Its next line.  Raises `MissingError` when it has died or hangs."""
        try:
            async with asyncio.timeout(_ANSWER_S):
                said = await self.stdout.readline()
        except TimeoutError:
            said = b""
        if not said:
            raise MissingError("The process that ours is compared with died or does not answer.")
        return json.loads(said)


class Direct:
    """See `System`.  One ask at a time."""

    name = DIRECT

    def __init__(self, process: Process, version: str) -> None:
        self._process = process
        self.version = version

    @classmethod
    @asynccontextmanager
    async def running(cls, settings: Local, model: Path) -> AsyncIterator[Self]:
        """Raises `MissingError`."""
        _need("llama_cpp")
        async with Process.running("direct", settings, model) as process:
            yield cls(process, await process.line())

    async def ask(self, prompt: Prompt) -> Answer:
        """See `System.ask`; measured in its process, so that nothing stands between."""
        self._process.stdin.write(json.dumps([as_text(prompt).text, prompt.max_tokens]).encode() + b"\n")
        first_ms, total_ms, n_tokens, reused, read = await self._process.line()
        return Answer(first_ms=first_ms, total_ms=total_ms, n_tokens=n_tokens, reused=reused, read=read)


class LlamaServer:
    """See `System`.  As many asks at a time as it has slots."""

    name = SERVER

    def __init__(self, client: httpx.AsyncClient, version: str) -> None:
        self._client = client
        self.version = version

    @classmethod
    @asynccontextmanager
    async def running(cls, settings: Local, model: Path) -> AsyncIterator[Self]:
        """Raises `MissingError`."""
        _need("xllamacpp")
        async with Process.running("llama_server", settings, model) as process:
            version, address = await process.line()
            async with httpx.AsyncClient(base_url=address, trust_env=False, timeout=_ANSWER_S) as client:
                async with asyncio.timeout(_ANSWER_S):
                    while not await _is_healthy(client):  # noqa: ASYNC110 - another process has no events of ours
                        await asyncio.sleep(_POLL_S)
                yield cls(client, version)

    async def ask(self, prompt: Prompt) -> Answer:
        """See `System.ask`.  Raises `MissingError`."""
        try:
            return await self._ask(prompt)
        except httpx.HTTPError as exc:
            raise MissingError("The llama-server that ours is compared with died or does not answer.") from exc

    async def _ask(self, prompt: Prompt) -> Answer:
        body = {
            "prompt": as_text(prompt).text,
            "n_predict": prompt.max_tokens,
            "temperature": 0.0,
            "cache_prompt": True,
            "stream": True,
            "return_progress": True,
        }
        first_ms = 0.0
        timings = Timings()
        pieces: list[str] = []
        began = time.perf_counter()
        async with self._client.stream("POST", "/completion", json=body) as response:
            response.raise_for_status()
            async for line in response.aiter_lines():
                if not line.startswith("data: "):
                    continue
                event = msgspec.json.decode(line[6:], type=Event)
                if event.prompt_progress is None:
                    first_ms = first_ms or (time.perf_counter() - began) * 1e3
                pieces.append(event.content)
                timings = event.timings or timings
        total_ms = (time.perf_counter() - began) * 1e3
        return Answer(first_ms, total_ms, timings.predicted_n, timings.cache_n, timings.prompt_n, "".join(pieces))


async def _is_healthy(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get("/health")).is_success
    except httpx.TransportError:
        return False


def _need(module: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise MissingError("not installed.")
