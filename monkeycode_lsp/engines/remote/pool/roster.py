"""Who serves what: every member is asked for its model in the background, and the first group that can be used is told.

Nobody waits for a member that is not needed.  Members that stand first in the settings are preferred, so one of those
that has not answered yet is waited for a moment.  A server can be started anew with another model: one that was away
is asked for its model again before it gets a prompt.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.engines.remote.pool import choice, groups
from monkeycode_lsp.engines.remote.pool.groups import Group
from monkeycode_lsp.engines.remote.pool.member import Member
from monkeycode_lsp.engines.remote.terms import Notify
from monkeycode_lsp.errors import EngineBusyError, EngineError, EngineFaultError, EngineRefusedError, EngineUnavailableError

logger = logging.getLogger(__name__)

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
        self._asking: dict[Member, asyncio.Task[EngineError | None]] = {}
        self._told: set[Member] = set()

    @property
    def is_alone(self) -> bool:
        """Whether there is only one member at all."""
        return len(self._members) == 1

    async def ready(self) -> Group:
        """The first group that can be used.  Raises the first member's error if no server has told its model."""
        group = self._usable()
        for member in self._members:
            is_new = member.model is None and (group is None or member.error is None)
            may_have_changed = member.model is not None and group is None and not member.is_resting
            if is_new or may_have_changed:
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

    def serves(self, member: Member, fingerprint: str) -> bool:
        """Whether it may get a prompt that was rendered for the model of that name, as far as is known; empty: any."""
        if not fingerprint or member.model is None:
            return True
        if self.is_alone:  # it goes by its own name
            return member.model.fingerprint == fingerprint
        group = self.group(fingerprint)
        return group is not None and member in group.members

    def company(self, members: Sequence[Member], fingerprint: str) -> Sequence[Member]:
        """All that may get a prompt of these members by what is known now; none if its model is not there any more."""
        if self.is_alone:
            return [member for member in members if self.serves(member, fingerprint)]
        if fingerprint:
            group = self.group(fingerprint)
            return group.members if group is not None else ()
        return next((group.members for group in self._groups if members[0] in group.members), members)

    async def a_moment(self) -> None:
        """Wait a little for those that are just being asked for their model."""
        if self._asking:
            await asyncio.wait(set(self._asking.values()), timeout=FIRST_S)

    async def confirm(self, member: Member) -> None:
        """See whether it is there and which model it serves now.  Raises an `EngineError` if it does not tell."""
        task = self.ask(member)
        await asyncio.wait({task})
        if task.cancelled():
            raise EngineUnavailableError("The engine was closed.")
        if (error := task.result()) is not None:
            raise error

    def ask(self, member: Member) -> asyncio.Task[EngineError | None]:
        """Find out what it serves.  The task does not fail; its result is why that could not be found out."""
        task = self._asking.get(member)
        if task is None:
            task = self._asking[member] = asyncio.create_task(self._identify(member))
            task.add_done_callback(lambda _: self._asking.pop(member))
        return task

    async def refresh(self, member: Member) -> Model:
        """What it serves, with what it has learned of that meanwhile; a server that was not away is not asked."""
        model = await member.server.ready()
        self._knows(member, model)
        return model

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
                is_first = member.error is None and member.model is None
                if is_first and not is_usable:
                    return None
                longest_s = max(longest_s, FIRST_S if is_first else 0.0 if is_usable else AGAIN_S)
        return longest_s

    async def _identify(self, member: Member) -> EngineError | None:
        is_new = member.model is None
        error: EngineError | None = None
        try:
            await self.refresh(member)
        except EngineRefusedError as exc:
            error = exc
            member.leave_out(exc)
        except Exception as exc:  # noqa: BLE001 - the guard of this task: whatever a server says of itself, the others are used
            error = exc if isinstance(exc, EngineError) else self._senseless(member, exc)
            member.failed(error)
        if error is None and is_new and member.error is not None:
            member.came_back()
            self._came_back(member)
        if self._usable() is not None:
            for other in self._members:
                if other.model is None and other.error is not None and not isinstance(other.error, EngineBusyError):
                    self._tell(other, other.error)
        return error

    def _senseless(self, member: Member, exc: Exception) -> EngineError:
        logger.warning("what %s says of its model makes no sense: %s", member.base, type(exc).__name__)
        return EngineFaultError(f"What the server at {member.base} says of its model makes no sense.")

    def _knows(self, member: Member, model: Model) -> None:
        if member.model != model:
            member.model = model
            self._groups = groups.gather(self._members, self._digest)

    def _tell(self, member: Member, error: EngineError) -> None:
        if member not in self._told:
            self._told.add(member)
            self._notify(f"The endpoint {member.base} is left out: {error}")
