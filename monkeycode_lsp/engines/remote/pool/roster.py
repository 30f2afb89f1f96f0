"""Who serves what: every member is asked for its model once, in the background, and the first group that can be used is told.

Nobody waits for a member that is not needed.  Members that stand first in the settings are preferred, so one of those
that has not answered yet is waited for a moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.engines.remote.pool import choice, groups
from monkeycode_lsp.engines.remote.pool.groups import Group
from monkeycode_lsp.engines.remote.pool.member import Member
from monkeycode_lsp.engines.remote.terms import Notify
from monkeycode_lsp.errors import EngineBusyError, EngineError, EngineRefusedError

FIRST_S = 0.5
"""So long a member that has not answered yet is waited for, when one after it can be used."""
AGAIN_S = 0.25
"""So long one that has failed before is waited for: it answers at once, or is still away."""


class Roster:
    """Of one pool."""

    # The mutable state is what runs to find out, which groups there are, and of whom the user was told.

    def __init__(self, members: Sequence[Member], *, digest: str, notify: Notify, came_back: Callable[[Member], None]) -> None:
        self._members = members
        self._digest = digest
        self._notify = notify
        self._came_back = came_back
        self._groups: list[Group] = []
        self._asking: dict[Member, asyncio.Task[None]] = {}
        self._told: set[Member] = set()

    async def ready(self) -> Group:
        """The first group that can be used.  Raises the first member's error if no server has told its model."""
        group = self._usable()
        for member in self._members:
            if member.model is None and (group is None or member.error is None):
                self.ask(member)
        began = asyncio.get_running_loop().time()
        while (longest_s := self._worth_waiting()) is None or longest_s > 0:
            left_s = None if longest_s is None else began + longest_s - asyncio.get_running_loop().time()
            if left_s is not None and left_s <= 0:
                break
            await asyncio.wait(set(self._asking.values()), timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        group = self._usable() or self._any()
        if group is None:
            raise choice.unusable(self._members)
        return group

    def group(self, fingerprint: str) -> Group | None:
        """The group of that name."""
        return next((group for group in self._groups if group.model.fingerprint == fingerprint), None)

    async def company(self, member: Member) -> Sequence[Member]:
        """Those that serve the same model; whoever is just being asked for his is waited for a moment."""
        if self._asking:
            await asyncio.wait(set(self._asking.values()), timeout=FIRST_S)
        return next((group.members for group in self._groups if member in group.members), (member,))

    def ask(self, member: Member) -> asyncio.Task[None]:
        """Find out what it serves.  The task does not fail."""
        task = self._asking.get(member)
        if task is None:
            task = self._asking[member] = asyncio.create_task(self._identify(member))
            task.add_done_callback(lambda _: self._asking.pop(member))
        return task

    async def refresh(self, member: Member) -> None:
        """It has learned something of its model; no server is asked."""
        self._knows(member, await member.server.ready())

    def leave_out(self, member: Member, error: EngineError) -> None:
        """It refuses what others take; the user hears it once."""
        member.leave_out(error)
        self._tell(member, error)

    async def aclose(self) -> None:
        tasks = set(self._asking.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _usable(self) -> Group | None:
        return next((group for group in self._groups if any(member.is_good for member in group.members)), None)

    def _any(self) -> Group | None:
        """Where nobody is trusted: one that may be tried, else one whose error is the answer."""
        trials = (group for group in self._groups if any(not member.is_resting for member in group.members))
        return next(trials, self._groups[0] if self._groups else None)

    def _worth_waiting(self) -> float | None:
        """How long what is being found out is worth waiting for, from the beginning; None: until it is known."""
        is_usable = self._usable() is not None
        longest_s = 0.0
        for member in self._members:
            if member.model is not None and member.is_good:
                break
            if member in self._asking:
                if member.error is None and not is_usable:
                    return None
                longest_s = max(longest_s, (0.0 if is_usable else AGAIN_S) if member.error else FIRST_S)
        return longest_s

    async def _identify(self, member: Member) -> None:
        try:
            model = await member.server.ready()
        except EngineRefusedError as exc:
            member.leave_out(exc)
        except EngineError as exc:
            member.failed(exc)
        else:
            self._knows(member, model)
            if member.error is not None:
                member.came_back()
                self._came_back(member)
        if self._usable() is not None:
            for other in self._members:
                if other.model is None and other.error is not None and not isinstance(other.error, EngineBusyError):
                    self._tell(other, other.error)

    def _knows(self, member: Member, model: Model) -> None:
        if member.model != model:
            member.model = model
            self._groups = groups.gather(self._members, self._digest)

    def _tell(self, member: Member, error: EngineError) -> None:
        if member not in self._told:
            self._told.add(member)
            self._notify(f"The endpoint {member.base} is left out: {error}")
