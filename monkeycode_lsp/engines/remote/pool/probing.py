"""Looks at members that are not trusted, so that they are used again soon after they are back, and no ask is risked on them.

Only while the engine is used: an editor that is left open overnight asks nobody anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from monkeycode_lsp.engines.remote.pool.member import Member, Standing
from monkeycode_lsp.engines.remote.pool.roster import Roster
from monkeycode_lsp.errors import EngineError, EngineRefusedError, EngineUnavailableError

FIRST_S = 0.5
LONGEST_S = 5.0
_LOOK_S = 3.0
"""Longest wait for one look: with the longest pause, a server is used again less than ten seconds after it is back."""
USED_S = 60.0
"""The engine counts as used so long after an ask."""


class Prober:
    """Of one pool."""

    # The mutable state is one task for each member that is watched, the looks that run, each member's next pause, and the
    # time of the last ask.

    def __init__(
        self, members: Sequence[Member], roster: Roster, *, clock: Callable[[], float], came_back: Callable[[Member], None]
    ) -> None:
        self._members = members
        self._roster = roster
        self._clock = clock
        self._came_back = came_back
        self._used_at = clock()
        self._pauses: dict[Member, float] = {}
        self._watching: dict[Member, asyncio.Task[None]] = {}
        self._looks: set[asyncio.Task[bool]] = set()

    def used(self) -> None:
        """The engine is asked: those that are not trusted are worth watching."""
        self._used_at = self._clock()
        for member in self._members:
            if member.standing is Standing.SUSPECT and member not in self._watching:
                self._watching[member] = task = asyncio.create_task(self._watch(member))
                task.add_done_callback(lambda _, member=member: self._watching.pop(member))  # type: ignore[misc]  # mypy knows no lambda defaults

    def answered(self, member: Member) -> None:
        """It has answered an ask, not only a look: it is really back."""
        self._pauses.pop(member, None)

    async def reachable(self) -> bool:
        """Whether any member can be seen now."""
        pending = looks = {self._begin(member) for member in self._members}
        until = self._clock() + _LOOK_S
        try:
            while pending and (left_s := until - self._clock()) > 0:
                done, pending = await asyncio.wait(pending, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
                if any(not look.cancelled() and look.result() for look in done):
                    return True
            return False
        finally:
            _end(looks)

    async def aclose(self) -> None:
        for task in self._watching.values():
            task.cancel()
        _end(self._looks)
        if tasks := {*self._watching.values(), *self._looks}:
            await asyncio.wait(tasks)

    async def _watch(self, member: Member) -> None:
        while self._clock() < self._used_at + USED_S:
            pause = self._pauses.get(member, FIRST_S)
            self._pauses[member] = min(LONGEST_S, 2 * pause)
            await asyncio.sleep(max(pause, member.server.backoff.left_s))
            if member.standing is not Standing.SUSPECT:
                return
            if member.model is None:
                await asyncio.wait({self._roster.ask(member)})
            else:
                await self._look(member)

    async def _look(self, member: Member) -> None:
        look = self._begin(member)
        await asyncio.wait({look}, timeout=_LOOK_S)
        if not look.done():
            look.cancel()
            await asyncio.wait({look})

    def _begin(self, member: Member) -> asyncio.Task[bool]:
        look = asyncio.create_task(self._see(member))
        self._looks.add(look)
        look.add_done_callback(self._looks.discard)
        return look

    async def _see(self, member: Member) -> bool:
        """Its health page, or its models; any answer but a complaint will do."""
        try:
            if await member.server.look("/health") is None:
                await member.server.look("/v1/models")
        except EngineRefusedError:
            pass  # it is there; whether it takes an ask, only an ask can tell
        except EngineError as exc:
            member.failed(exc)
            return False
        if member.model is not None and member.standing is Standing.SUSPECT and len(self._members) > 1:
            return await self._is_itself(member)
        return self._trust(member)

    async def _is_itself(self, member: Member) -> bool:
        """Another model may be there than before; only when it has told is it trusted."""
        member.server.backoff.seen()
        if member.is_resting:  # it wants to be left alone
            return True
        task = self._roster.ask(member)
        await asyncio.wait({task})
        if task.cancelled() or isinstance(task.result(), EngineUnavailableError):
            return False
        return self._trust(member) if task.result() is None else True

    def _trust(self, member: Member) -> bool:
        if member.standing is not Standing.LEFT_OUT:
            member.came_back()
            self._came_back(member)
        return True


def _end(looks: set[asyncio.Task[bool]]) -> None:
    for look in looks:
        if not look.done() and not look.cancelling():  # twice is once too often for the connection inside
            look.cancel()
