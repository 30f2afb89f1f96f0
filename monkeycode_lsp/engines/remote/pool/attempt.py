"""One member asked for one answer, and two of them asked beside each other.

However it ends, the member's place is given back once, and the member's record says what it was like.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from monkeycode_lsp.domain import Chunk, Prompt
from monkeycode_lsp.engines.remote.pool.admission import Place
from monkeycode_lsp.engines.remote.pool.member import Member
from monkeycode_lsp.errors import EngineError, EngineRefusedError, StreamBrokenError


class Attempt:
    """One answer of one member."""

    # The mutable state is the stream, and the error that ended it; it changes in `first` and `aclose` only.

    def __init__(self, place: Place, prompt: Prompt, clock: Callable[[], float]) -> None:
        self.member = place.member
        self.error: EngineError | None = None
        self.stream = place.member.server.stream(_addressed(prompt, place.member))
        self._place = place
        self._clock = clock

    async def first(self) -> Chunk:
        """Its first piece.  If there is none, everything is closed already."""
        began = self._clock()
        try:
            chunk = await anext(self.stream, None)
            if chunk is None:
                raise StreamBrokenError(f"The server at {self.member.base} said nothing at all.")  # noqa: TRY301 - as if it had said so itself
        except BaseException as exc:
            if isinstance(exc, EngineError):
                self.failed(exc)
            else:
                self.member.was_silent(self._clock() - began)
            self._place.release()  # the stream has ended with its error
            raise
        self.member.latencies.add(self._clock() - began)
        return chunk

    def failed(self, error: EngineError) -> None:
        """Note how it ended.  A refusal may be the prompt's fault: only if others take that, it is the member's."""
        self.error = error
        if not isinstance(error, EngineRefusedError):
            self.member.failed(error)

    async def aclose(self) -> None:
        try:
            await self.stream.aclose()
        finally:
            self._place.release()


class Races:
    """Attempts beside each other: who says something first is taken, the other is closed at once."""

    # The mutable state is the tasks that close losers.

    def __init__(self) -> None:
        self._closing: set[asyncio.Task[None]] = set()

    async def run(self, first: Attempt, after_s: float, second: Callable[[], Attempt | None]) -> tuple[Attempt, Chunk]:
        """The winner and its first piece.  `second` is called if the first one has said nothing after that time."""
        runners = {asyncio.create_task(first.first()): first}
        won = False
        error: BaseException | None = None
        try:
            await asyncio.wait(runners, timeout=after_s)
            if not next(iter(runners)).done() and (other := second()) is not None:
                runners[asyncio.create_task(other.first())] = other
            while True:
                await asyncio.wait(runners, return_when=asyncio.FIRST_COMPLETED)
                for task, attempt in list(runners.items()):
                    if not task.done():
                        continue
                    del runners[task]
                    if task.exception() is None:
                        won = True
                        return attempt, task.result()
                    error = error or task.exception()
                if not runners and error is not None:
                    raise error
        finally:
            closing = {self._close(task, attempt) for task, attempt in runners.items()}
            if closing and not won:
                await asyncio.wait(closing)

    async def aclose(self) -> None:
        """Wait until every loser is closed."""
        if self._closing:
            await asyncio.wait(set(self._closing))

    def _close(self, task: asyncio.Task[Chunk], attempt: Attempt) -> asyncio.Task[None]:
        task.cancel()
        closing = asyncio.create_task(_closed(task, attempt))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        return closing


def _addressed(prompt: Prompt, member: Member) -> Prompt:
    """By the member's own name of the model: it may find out only now that another one is there, and refuses the prompt then."""
    if not prompt.model or member.model is None:
        return prompt
    return msgspec.structs.replace(prompt, model=member.model.fingerprint)


async def _closed(task: asyncio.Task[Chunk], attempt: Attempt) -> None:
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # of one that has lost: nobody else looks at it
    await attempt.aclose()
