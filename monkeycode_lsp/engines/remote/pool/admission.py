"""Places at the servers, and the line of asks that wait for one.

A place is handed over exactly once, and given back exactly once.  Nobody waits while a place is free that he may have.
"""

from __future__ import annotations

import asyncio
import bisect
from collections.abc import Callable, Collection, Sequence

import msgspec

from monkeycode_lsp.domain import Priority, Prompt
from monkeycode_lsp.engines.remote.pool import choice
from monkeycode_lsp.engines.remote.pool.member import Member
from monkeycode_lsp.errors import EngineBusyError

_CLASS_GAP = 0.2
"""Of the longest wait: what an ask of a class is behind one of the class before.  So even the last class gets its turn in time."""
_READ_PER_S = 10_000
_TOKENS_PER_S = 50
"""Rough speeds of a server: they only order those who wait."""


class Request(msgspec.Struct, frozen=True):
    """What one ask needs to know of itself to get a place."""

    members: Sequence[Member]
    priority: Priority = Priority.INTERACTIVE
    expected_s: float = 0.0
    session: str = ""

    @property
    def urgent(self) -> bool:
        """Whether somebody waits for the answer."""
        return self.priority is Priority.INTERACTIVE


def request(prompt: Prompt, members: Sequence[Member]) -> Request:
    return Request(
        members,
        priority=prompt.priority,
        expected_s=(len(prompt.prefix) + len(prompt.suffix)) / _READ_PER_S + prompt.max_tokens / _TOKENS_PER_S,
        session=prompt.session,
    )


def turn(asked: Request, *, at: float, longest_s: float) -> float:
    """When the ask is due; who is due first is served first.  It never changes, so nobody can be overtaken for ever.

    Of those who come together the more urgent class is first, and in it the shortest.
    """
    gap = _CLASS_GAP * longest_s
    return at + gap * (asked.priority + 0.5 * asked.expected_s / (1.0 + asked.expected_s))


class Place:
    """One of a member's places, taken."""

    # The mutable state is whether it was given back; it changes in `release` only.

    __slots__ = ("_admission", "_is_taken", "member")

    def __init__(self, member: Member, admission: Admission) -> None:
        self.member = member
        self._admission = admission
        self._is_taken = True

    def release(self) -> None:
        """Give it back; again is nothing."""
        if self._is_taken:
            self._is_taken = False
            self.member.n_asked -= 1
            self._admission.changed()


class _Waiter:
    """An ask in the line.  Its future gets a place, or None: nobody can serve it any more."""

    __slots__ = ("asked", "avoid", "due", "future")

    def __init__(self, asked: Request, avoid: Collection[Member], due: float, future: asyncio.Future[Place | None]) -> None:
        self.asked = asked
        self.avoid = avoid
        self.due = due
        self.future = future


class Admission:
    """All places and the line."""

    # The mutable state is the line, in the order in which it is served, and every member's count of asks; it changes in `take`,
    # `wait`, `changed` and by giving places back.

    def __init__(self, *, limit: int, longest_s: float, clock: Callable[[], float]) -> None:
        self._limit = limit
        self._longest_s = longest_s
        self._clock = clock
        self._line: list[_Waiter] = []
        self.sessions = choice.Sessions()

    def __len__(self) -> int:
        """How many wait."""
        return len(self._line)

    def take(self, asked: Request, avoid: Collection[Member] = (), *, is_due: bool = False) -> Place | None:
        """A place that is free now.  Who waits already could not have had it.

        `is_due`: it has waited so long that it may have the last place too, even if nobody waits for its answer.
        """
        several = len(asked.members) > 1
        member = choice.choose(
            asked.members,
            limit=self._limit,
            urgent=asked.urgent or is_due,
            preferred=self.sessions.member(asked.session) if several else None,
            avoid=avoid,
        )
        if member is None:
            return None
        if several:
            self.sessions.served(asked.session, member)
            if member in choice.slow(asked.members):
                choice.catch_up(member, asked.members)
        return self.occupy(member)

    def spare(self, asked: Request, first: Member, may_have: Callable[[Member], bool]) -> Member | None:
        """A member beside the first one with a place that is free, for the same ask."""
        others = [member for member in asked.members if member not in first.neighbours and member.is_good and may_have(member)]
        return choice.choose(others, limit=self._limit) if others else None

    def occupy(self, member: Member) -> Place:
        """A place at this member, which was found free in the same step."""
        member.given()
        return Place(member, self)

    async def wait(self, asked: Request, until: float, avoid: Collection[Member] = ()) -> Place:
        """A place as soon as it is this ask's turn, until that time of the clock.  Raises an `EngineError`."""
        if not choice.usable(asked.members, avoid):
            raise choice.unusable(asked.members)
        future: asyncio.Future[Place | None] = asyncio.get_running_loop().create_future()
        waiter = _Waiter(asked, avoid, turn(asked, at=self._clock(), longest_s=self._longest_s), future)
        bisect.insort(self._line, waiter, key=lambda other: other.due)
        place: Place | None = None
        try:
            async with asyncio.timeout(until - self._clock()):
                place = await future
        except TimeoutError:
            raise self._too_long(asked.members) from None
        finally:
            if waiter in self._line:
                self._line.remove(waiter)
            # It can be given a place and be cancelled in the same step of the loop.
            if place is None and future.done() and not future.cancelled() and (given := future.result()) is not None:
                given.release()
        if place is None:
            raise choice.unusable(asked.members)
        return place

    def changed(self) -> None:
        """A place is free, or a member is trusted more or less than before: serve who can be served."""
        if not self._line:
            return
        now = self._clock()
        in_vain: set[tuple[int, bool]] = set()
        for waiter in tuple(self._line):
            if waiter.future.done():  # cancelled, and not yet gone
                continue
            is_due = now >= waiter.due
            alike = (id(waiter.asked.members), waiter.asked.urgent or is_due)
            if alike in in_vain:
                continue
            place = self.take(waiter.asked, waiter.avoid, is_due=is_due)
            if place is not None or not choice.usable(waiter.asked.members, waiter.avoid):
                self._line.remove(waiter)
                waiter.future.set_result(place)
            elif not waiter.avoid:
                in_vain.add(alike)

    def close(self) -> None:
        """Send away all who wait."""
        for waiter in self._line:
            if not waiter.future.done():
                waiter.future.set_result(None)
        self._line.clear()

    def _too_long(self, members: Sequence[Member]) -> EngineBusyError:
        bases = " and ".join(member.base for member in members)
        return EngineBusyError(
            f"Every place at {bases} has been taken for {self._longest_s:g} seconds.",
            remedy="If there is room for more at the same time, raise `remote.concurrency`; or add an endpoint.",
        )
