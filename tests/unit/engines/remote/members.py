"""What the tests of the pool share: servers without a network, whose answers a test decides, and members of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import Any

from monkeycode_lsp import config
from monkeycode_lsp.domain import Chunk, Finish, Prompt
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.engines.remote.backoff import Backoff
from monkeycode_lsp.engines.remote.engine import RemoteEngine
from monkeycode_lsp.engines.remote.pool.member import Member
from monkeycode_lsp.errors import EngineBusyError, EngineError, EngineUnavailableError
from monkeycode_lsp.prompt import FAMILIES


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class FakeServer:
    """Says its own name.  `error` is raised instead; `hold()` makes it wait until `go()`."""

    def __init__(self, name: str = "s", *, model: str = "qwen", family: str = "qwen2.5-coder") -> None:
        self.name = name
        self.backoff = Backoff(time.monotonic)
        self.model = Model(model, next((known for known in FAMILIES if known.name == family), None), f"remote:{name}", context_tokens=4096)
        self.error: EngineError | None = None
        self.breaks: EngineError | None = None
        """Raised after the first piece."""
        self.n_asked = 0
        self.n_running = 0
        self.most_running = 0
        self.n_looks = 0
        self.n_identified = 0
        self.is_closed = False
        self._told: Model | None = None
        """What it said of its model, unless it was away since."""
        self._gate = asyncio.Event()
        self._gate.set()
        self.begun = asyncio.Event()
        """An answer is being waited for."""
        self.knows = asyncio.Event()
        """Whether it tells its model."""
        self.knows.set()

    def hold(self) -> None:
        self._gate.clear()

    def go(self) -> None:
        self._gate.set()

    async def ready(self) -> Model:
        if self._told is None:
            self.n_identified += 1
            await self.knows.wait()
            self._fail()
            self._told = self.model
        return self._told

    async def stream(self, asked: Prompt) -> AsyncGenerator[Chunk, None]:
        self._told = self._told or self.model
        self.n_asked += 1
        self.n_running += 1
        self.most_running = max(self.most_running, self.n_running)
        try:
            self.begun.set()
            await self._gate.wait()
            self._fail()
            self.backoff.succeeded()
            yield Chunk(self.name)
            if self.breaks is not None:
                raise self.breaks
            yield Chunk("!", finish=Finish.STOP)
        finally:
            self.n_running -= 1

    def keep_warm(self):
        pass

    async def look(self, path: str) -> bytes | None:
        self.n_looks += 1
        self._fail()
        return b"" if path == "/health" else None

    async def aclose(self) -> None:
        self.is_closed = True

    def _fail(self) -> None:
        if self.error is not None:
            if isinstance(self.error, EngineUnavailableError):
                self._told = None
            if isinstance(self.error, EngineUnavailableError | EngineBusyError):
                self.backoff.failed(self.error)
            raise self.error


def member(server: FakeServer, **how: Any) -> Member:
    return Member(server, base=f"http://{server.name}", **how)


def engine(
    *servers: FakeServer, told: list[str] | None = None, endpoints: dict[str, dict[str, Any]] | None = None, **remote: Any
) -> RemoteEngine:
    """An engine of these servers; `endpoints` has more settings of some by name."""
    by_url = {f"http://{server.name}": server for server in servers}
    settings = tuple(config.Endpoint(url=url, **(endpoints or {}).get(server.name, {})) for url, server in by_url.items())
    return RemoteEngine(
        settings=config.Remote(endpoints=settings, **remote),
        notify=(told if told is not None else []).append,
        environ={},
        connect=lambda endpoint: by_url[endpoint.url],
    )
