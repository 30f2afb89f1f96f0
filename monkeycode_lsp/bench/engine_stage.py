"""What the parts of the engine benchmark share: how much is done, the text, and the systems that are running."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

import msgspec

from monkeycode_lsp.bench import engine_text
from monkeycode_lsp.bench.competitors import Direct, LlamaServer, MissingError
from monkeycode_lsp.bench.engine_report import DIRECT, SERVER, Answer
from monkeycode_lsp.bench.engine_systems import Ours, System
from monkeycode_lsp.config import Local
from monkeycode_lsp.domain import Prompt
from monkeycode_lsp.prompt import Family

COMPETITORS: dict[str, Callable[[Local, Path], AbstractAsyncContextManager[System]]] = {DIRECT: Direct.running, SERVER: LlamaServer.running}


class Plan(msgspec.Struct, frozen=True):
    """How much is done.  The defaults suit two slow cores and a model of half a billion parameters: about six minutes."""

    short_tokens: int = 500
    long_tokens: int = 2_000
    answer_tokens: int = 32
    cold: int = 3
    warm: int = 6
    letters: int = 10
    edits: int = 2
    swaps: int = 3
    windows: int = 4
    window_rounds: int = 3
    parallel: tuple[int, ...] = (4, 8)
    parallel_rounds: int = 3
    drafts: int = 4
    """Rounds of each of the two prompts."""
    aborts: int = 6
    messages: int = 400
    servers: int = 8
    kills: int = 0
    quick: bool = False


QUICK = Plan(
    short_tokens=250,
    long_tokens=600,
    cold=1,
    warm=3,
    letters=5,
    edits=1,
    swaps=1,
    window_rounds=1,
    parallel=(4,),
    parallel_rounds=1,
    drafts=2,
    aborts=3,
    messages=200,
    servers=4,
    quick=True,
)
"""Whether everything works, in about a minute."""


class Stage:
    """One run."""

    # The mutable state is the systems that are running, what became of each and the model's family (found out in
    # `start` and `learn`), and the number of the next text; it changes in those, `systems`, `clear` and `fresh` only.

    def __init__(self, *, settings: Local, model: Path, plan: Plan, home: Path, against: Sequence[str], say: Callable[[str], None]) -> None:
        self.settings = settings
        self.model = model
        self.plan = plan
        self.home = home
        self.say = say
        self.versions: dict[str, str] = {}
        self._against = tuple(against)
        self._files = engine_text.library()
        self._numbers = itertools.count()
        self._running: AsyncExitStack | None = None
        self._systems: list[System] = []
        self._family: Family | None = None

    async def ours(self) -> Ours:
        """Our engine with the run's settings."""
        system = (await self.systems())[0]
        if not isinstance(system, Ours):
            raise TypeError("the first system is not ours")
        return system

    async def systems(self) -> list[System]:
        """All that are here, ours first; they are started by the first part that needs them."""
        if self._running is None:
            self._running = AsyncExitStack()
            self._systems = await self.start(self._running, self.settings)
        return list(self._systems)

    async def start(self, stack: AsyncExitStack, settings: Local, *, leave_out: Sequence[str] = ()) -> list[System]:
        """Systems with other settings, until `stack` is closed."""
        ours = await stack.enter_async_context(Ours.running(settings, self.model))
        self.learn(ours)
        found: list[System] = [ours]
        for name, make in COMPETITORS.items():
            if name not in self._against:
                self.versions[name] = "not asked for"
            elif name not in leave_out:
                try:
                    system = await stack.enter_async_context(make(settings, self.model))
                    self.versions[name] = system.version
                    found.append(system)
                except MissingError as exc:
                    self.versions[name] = f"not here: {exc}"
        return found

    def learn(self, ours: Ours) -> None:
        """What the prompts need to know of the model."""
        self.versions[ours.name] = ours.version
        self._family = ours.model.family

    async def clear(self) -> None:
        """End the systems that are running: the parts that follow start others and want the memory."""
        running, self._running, self._systems = self._running, None, []
        if running is not None:
            await running.aclose()

    def fresh(self, n_tokens: int) -> str:
        """Code that no prompt of this run began with."""
        return engine_text.code(self._files, next(self._numbers), n_tokens)

    def prompt(self, before: str, *, max_tokens: int = 1, session: str = "", draft: str = "", number: int = 0) -> Prompt:
        """Behind `before` and the beginning of a function; the systems must have been started."""
        return self.at(self.before(before, number), max_tokens=max_tokens, session=session, draft=draft)

    def before(self, text: str, number: int) -> str:
        """A text and the beginning of a function."""
        return text + engine_text.HEADS[number % len(engine_text.HEADS)]

    def at(self, before: str, *, max_tokens: int = 1, session: str = "", draft: str = "", after: str = "\n") -> Prompt:
        """With its cursor behind `before`."""
        return engine_text.ask(before, self._family, max_tokens=max_tokens, session=session, draft=draft, after=after)


def n_prompt(answer: Answer) -> int:
    """All tokens of the prompt."""
    return answer.reused + answer.read
