"""The endpoints, and another engine in their place while none of them can be reached.

Who answers changes only when a look at the endpoints says so, never in the middle of an answer: one lost
connection must not load a model, and one that comes back must not be found out by an ask that is lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Protocol

from monkeycode_lsp import clock
from monkeycode_lsp.domain import Chunk, Prompt
from monkeycode_lsp.engines.base import Engine, Model
from monkeycode_lsp.errors import EngineBusyError, EngineError, EngineUnavailableError, ModelError, StaysHereError

logger = logging.getLogger(__name__)

FIRST_LOOK_S = 1.0
LONGEST_LOOK_S = 5.0
"""Between two looks at endpoints that are gone: they are in use again within ten seconds of their return."""
USED_S = 60.0
"""After the last ask nobody cares who would answer: looking rests until the next one."""
KEPT_S = 30.0
"""So long the stand-in lives on when the endpoints are back: its answers may still be running, and they may go again."""


class Reachable(Engine, Protocol):
    """An engine that can tell whether it could answer, without being asked for an answer."""

    async def reachable(self) -> bool:
        """Look now.  Raises nothing."""
        ...


class Failover:
    """Answers by `first`, or by the engine that `stand_in` makes."""

    # The mutable state: the stand-in while there is one and the model that it serves, the names of all models that ever stood in,
    # why the endpoints are out of use, the task that looks at them, the one that lets the stand-in go when its time has come,
    # those that close it, its running answers, when somebody asked last, until when nothing could stand in, and whether it is closed.

    def __init__(self, first: Reachable, stand_in: Callable[[], Engine], *, notify: Callable[[str], None]) -> None:
        """`stand_in` makes the other engine; it may block, and raises what is missing for it."""
        self._first = first
        self._make = stand_in
        self._notify = notify
        self._stand_in: Engine | None = None
        self._standing: Model | None = None
        self._stood_in: set[str] = set()
        self._gone: EngineError | None = None
        self._looking: asyncio.Task[None] | None = None
        self._leaving: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._used = 0.0
        self._alone_until = 0.0
        self._n_standing = 0
        self._at_rest = asyncio.Event()
        self._at_rest.set()
        self._is_closed = False

    async def ready(self) -> Model:
        """See `Engine.ready`."""
        self._used = clock.now()
        if self._gone is None:
            try:
                return await self._first.ready()
            except EngineUnavailableError as exc:
                if not await self._are_gone(exc):
                    raise
        return await self._instead()

    def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        """See `Engine.stream`."""
        self._used = clock.now()
        answering = self.answering(prompt.model)
        if answering is not self._first:
            return self._stood_in_for(answering, prompt)
        if prompt.model in self._stood_in:  # rendered for this machine, it never leaves it
            raise EngineBusyError("The endpoints answer again.", remedy="Ask again.")
        return self._watched(prompt)

    def answering(self, model: str) -> Engine:
        """See `Delegating`."""
        if self._stand_in is not None and self._standing is not None and model == self._standing.fingerprint:
            return self._stand_in
        return self._first

    async def aclose(self) -> None:
        """See `Engine.aclose`."""
        self._is_closed = True
        tasks = {task for task in (self._looking, self._leaving) if task is not None}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._first.aclose()
        if self._stand_in is not None:
            await self._stand_in.aclose()
        await self._closed()

    async def _stood_in_for(self, stand_in: Engine, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        self._n_standing += 1
        self._at_rest.clear()
        try:
            async with aclosing(stand_in.stream(prompt)) as chunks:
                async for chunk in chunks:
                    yield chunk
        finally:
            self._n_standing -= 1
            if not self._n_standing:
                self._at_rest.set()

    async def _watched(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        try:
            async with aclosing(self._first.stream(prompt)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except StaysHereError:  # they are there, and must not see it
            raise
        except EngineUnavailableError as exc:
            self._lost(exc)
            raise

    async def _are_gone(self, why: EngineError) -> bool:
        self._lost(why)
        if self._looking is not None:
            await asyncio.wait({self._looking}, timeout=FIRST_LOOK_S)
        return self._gone is not None

    async def _instead(self) -> Model:
        stand_in, why = self._stand_in, self._gone
        if stand_in is None or why is None:
            return await self._first.ready()
        self._look_on()
        try:
            model = await stand_in.ready()
        except (EngineUnavailableError, ModelError) as exc:
            logger.info("no engine can stand in for the endpoints: %s", exc)
            self._alone_until = clock.now() + USED_S
            self._gone = None
            if self._looking is not None:  # who asks next tries the endpoints by himself
                self._looking.cancel()
                self._looking = None
            raise why from None  # what the user should mend are the endpoints
        if self._standing is None:
            self._notify(f"{why.message} Until that is mended, {model.name} answers on this machine.")
        self._standing = model
        self._stood_in.add(model.fingerprint)
        return model

    # Coming and going

    def _lost(self, why: EngineError) -> None:
        """An answer failed for want of an endpoint: see whether they are really gone."""
        if self._gone is None and self._looking is None and not self._is_closed and clock.now() >= self._alone_until:
            self._looking = asyncio.create_task(self._confirm(why))

    async def _confirm(self, why: EngineError) -> None:
        if not await self._first.reachable() and await self._can_stand_in():
            self._gone = why
        self._looking = None

    async def _can_stand_in(self) -> bool:
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None
        await self._closed()  # two models at a time may be more than the machine can hold
        if self._stand_in is None:
            try:
                self._stand_in = await asyncio.to_thread(self._make)
            except (EngineUnavailableError, ModelError):
                self._alone_until = clock.now() + USED_S
        return self._stand_in is not None

    def _look_on(self) -> None:
        if self._looking is None and not self._is_closed:
            self._looking = asyncio.create_task(self._look())

    async def _look(self) -> None:
        pause_s = FIRST_LOOK_S
        while clock.now() - self._used < USED_S:
            await asyncio.sleep(pause_s)
            if await self._first.reachable():
                self._back()
                break
            pause_s = min(LONGEST_LOOK_S, pause_s * 1.5)
        self._looking = None

    def _back(self) -> None:
        self._gone = None
        if self._stand_in is not None and self._leaving is None:
            self._leaving = asyncio.create_task(self._let_go(self._stand_in))

    async def _let_go(self, stand_in: Engine) -> None:
        await asyncio.sleep(KEPT_S)
        await self._at_rest.wait()
        self._stand_in = self._standing = None
        self._leaving = None
        # In a task of its own: from here on nothing calls it off.
        closing = asyncio.create_task(stand_in.aclose())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def _closed(self) -> None:
        """Wait until whatever was let go is closed."""
        if self._closing:
            await asyncio.wait(set(self._closing))
