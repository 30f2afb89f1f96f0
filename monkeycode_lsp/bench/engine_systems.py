"""Our engine under a stopwatch, and the turns that systems take: the machine is noisy, so what is compared is measured side by side."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Protocol, Self

from monkeycode_lsp.bench import processes
from monkeycode_lsp.bench.engine_report import OURS, Answer
from monkeycode_lsp.config import Local
from monkeycode_lsp.domain import Prompt, Usage
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.engines.local.native import NativeEngine

REST_S = 0.1
"""Threads of the one spin on after its turn; the other's turn begins when they sleep."""
_LEAVE_S = 10.0


class System(Protocol):
    """Whatever answers prompts and is measured."""

    name: str
    version: str

    async def ask(self, prompt: Prompt) -> Answer:
        """One whole answer, greedy, with its times."""
        ...


class Ours:
    """See `System`.  One window."""

    name = OURS

    def __init__(self, engine: NativeEngine, model: Model) -> None:
        self.engine = engine
        self.model = model
        self.version = model.name

    @classmethod
    @asynccontextmanager
    async def running(cls, settings: Local, model: Path) -> AsyncIterator[Self]:
        """A window of its own; windows of the same settings share one engine process."""
        engine = NativeEngine(settings=settings, model=model, notify=lambda _message: None)
        try:
            yield cls(engine, await engine.ready())
        finally:
            await engine.aclose()

    async def ask(self, prompt: Prompt) -> Answer:
        """See `System.ask`."""
        first_ms = last_ms = 0.0
        n_first = 0
        usage = Usage()
        pieces: list[str] = []
        began = time.perf_counter()
        async with aclosing(self.engine.stream(prompt)) as stream:
            async for chunk in stream:
                last_ms = (time.perf_counter() - began) * 1e3
                if not first_ms:
                    first_ms, n_first = last_ms, chunk.n_tokens
                pieces.append(chunk.text)
                usage = chunk.usage or usage
        return Answer(first_ms, last_ms, usage.generated or 0, usage.reused or 0, usage.read or 0, "".join(pieces), n_first)


async def take_turns(systems: Sequence[System], prompts: Iterable[Prompt]) -> dict[str, list[Answer]]:
    """Each prompt to each system; who begins changes from prompt to prompt."""
    answers: dict[str, list[Answer]] = {system.name: [] for system in systems}
    for number, prompt in enumerate(prompts):
        start = number % len(systems)
        for system in (*systems[start:], *systems[:start]):
            await asyncio.sleep(REST_S)
            answers[system.name].append(await system.ask(prompt))
    return answers


@contextmanager
def own_home() -> Iterator[Path]:
    """A `MONKEYCODE_HOME` for one run, so that no engine process of the user's is met; what was started with it ends with it."""
    before = os.environ.get("MONKEYCODE_HOME")
    with tempfile.TemporaryDirectory(prefix="monkeycode-bench-", ignore_cleanup_errors=True) as name:
        home = Path(name)
        os.environ["MONKEYCODE_HOME"] = name
        try:
            yield home
        finally:
            _see_them_off(home)
            os.environ.pop("MONKEYCODE_HOME")
            if before is not None:
                os.environ["MONKEYCODE_HOME"] = before


def _see_them_off(home: Path) -> None:
    """Wait until the processes of this home have left; who stays too long is ended."""
    for pid in processes.wait_gone(home, _LEAVE_S):
        processes.kill(pid)
