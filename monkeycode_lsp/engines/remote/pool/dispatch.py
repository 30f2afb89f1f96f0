"""One ask's way through the pool: a place, a member, perhaps a second one, perhaps another try.

Tries end with the first piece of an answer; whatever happens, what was opened is closed and every place is given back.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress

from monkeycode_lsp import config
from monkeycode_lsp.domain import Chunk, Prompt
from monkeycode_lsp.engines.remote.pool import admission, choice, groups, hedging, retry
from monkeycode_lsp.engines.remote.pool.attempt import Attempt, Races
from monkeycode_lsp.engines.remote.pool.member import Member, Standing
from monkeycode_lsp.engines.remote.pool.probing import Prober
from monkeycode_lsp.engines.remote.pool.roster import Roster
from monkeycode_lsp.errors import ContextOverflowError, EngineBusyError, EngineError, EngineRefusedError, EngineUnavailableError


class Course:
    """How far one ask has come."""

    # The mutable state is the members that it asked, how often it began, and how often it waited for busy ones.

    def __init__(self, prompt: Prompt, members: Sequence[Member], until: float) -> None:
        self.prompt = prompt
        self.asked = admission.request(prompt, members)
        self.until = until
        self.attempts: list[Attempt] = []
        self.avoid: list[Member] = []
        self.n_tries = 0
        self.n_waits = 0

    def began(self, attempt: Attempt) -> Attempt:
        self.attempts.append(attempt)
        self.avoid.append(attempt.member)
        return attempt

    def ask_of(self, members: Sequence[Member]) -> None:
        """These can answer it, by what is known now."""
        if members and members is not self.asked.members:
            self.asked = admission.request(self.prompt, members)

    def forgive(self) -> None:
        """Those that were only busy may be asked again."""
        self.n_waits += 1
        self.avoid = [attempt.member for attempt in self.attempts if not isinstance(attempt.error, EngineBusyError)]


class Dispatcher:
    """Of one engine."""

    # The mutable state is that of its parts, and whether it is closed.

    def __init__(
        self,
        settings: config.Remote,
        *,
        roster: Roster,
        prober: Prober,
        clock: Callable[[], float],
        draw: Callable[[], float] = random.random,
    ) -> None:
        self.admission = admission.Admission(limit=settings.concurrency, longest_s=settings.timeout_ms / 1e3, clock=clock)
        self._settings = settings
        self._roster = roster
        self._prober = prober
        self._clock = clock
        self._draw = draw
        self._budget = hedging.Budget()
        self._races = Races()
        self._is_closed = False

    async def stream(self, prompt: Prompt, members: Sequence[Member]) -> AsyncGenerator[Chunk, None]:
        """The answer of one of these members; see `Engine.stream`."""
        course = Course(prompt, members, self._clock() + self._settings.timeout_ms / 1e3)
        while True:
            attempt: Attempt | None = None
            try:
                place = self._place(course) or await self.admission.wait(course.asked, course.until, course.avoid)
                await self._confirm(course, place)
                attempt, chunk = await self._begin(course, place)
                self._answered(course, attempt)
                yield chunk
                async for chunk in attempt.stream:
                    yield chunk
            except EngineError as exc:
                if attempt is not None:
                    attempt.failed(exc)
                await self._learn(exc, course)
                wait_s = await self._next(exc, course) if attempt is None else None
                if wait_s is None:
                    raise
            else:
                return
            finally:
                if attempt is not None:
                    await attempt.aclose()
            if wait_s > 0:
                await asyncio.sleep(wait_s)

    def came_back(self, member: Member, members: Sequence[Member]) -> None:
        """It is trusted again: who waits may go to it."""
        choice.catch_up(member, members)
        self.admission.changed()

    async def aclose(self) -> None:
        self._is_closed = True
        self.admission.close()
        await self._races.aclose()

    def _place(self, course: Course) -> admission.Place | None:
        if self._is_closed:
            raise EngineUnavailableError("The engine was closed.")
        course.n_tries += 1
        return self.admission.take(course.asked, course.avoid)

    async def _confirm(self, course: Course, place: admission.Place) -> None:
        """Make sure that the place is at a server of the prompt's model: it may have been started anew with another one."""
        member = place.member
        try:
            if member.standing is not Standing.GOOD:
                await self._roster.confirm(member)
            if not self._roster.serves(member, course.prompt.model):
                raise EngineBusyError(f"The server at {member.base} serves another model by now.", remedy="Ask again.")  # noqa: TRY301 - as if it had said so itself
        except BaseException:
            course.avoid.append(member)
            place.release()
            raise

    async def _begin(self, course: Course, place: admission.Place) -> tuple[Attempt, Chunk]:
        first = course.began(Attempt(place, course.prompt, self._clock))
        if self._roster.is_alone or not course.asked.urgent or self._settings.hedge == "off":
            return first, await first.first()
        self._budget.asked()

        def second() -> Attempt | None:
            course.ask_of(self._company(course))
            other = self.admission.spare(course.asked, first.member, lambda member: hedging.allows(self._settings.hedge, member))
            if other is None or not self._budget.spend():
                return None
            return course.began(Attempt(self.admission.occupy(other), course.prompt, self._clock))

        return await self._races.run(first, hedging.after_s(first.member, course.asked.members), second)

    def _company(self, course: Course) -> Sequence[Member]:
        """All that may get its prompt by what is known now."""
        return groups.allowed(self._roster.company(course.asked.members, course.prompt.model), course.prompt)

    def _answered(self, course: Course, attempt: Attempt) -> None:
        members = course.asked.members
        was_away = attempt.member.answered()
        self._prober.answered(attempt.member)
        if len(members) == 1:
            return
        self.admission.sessions.served(course.prompt.session, attempt.member)
        if was_away:
            self.came_back(attempt.member, members)
        for other in course.attempts:
            if isinstance(other.error, EngineRefusedError) and not isinstance(other.error, ContextOverflowError):
                self._roster.leave_out(other.member, other.error)

    async def _learn(self, error: EngineError, course: Course) -> None:
        if self._roster.is_alone or not isinstance(error, EngineRefusedError):
            return
        for attempt in course.attempts:
            if attempt.error is not error:
                continue
            if isinstance(error, ContextOverflowError):
                with suppress(EngineError):
                    await self._roster.refresh(attempt.member)
            else:  # perhaps it serves another model by now
                self._roster.ask(attempt.member)

    async def _next(self, error: EngineError, course: Course) -> float | None:
        """Seconds until the next try; None: it is over."""
        if not choice.usable(course.asked.members, course.avoid):  # at first another one may be about to tell its model
            await self._roster.a_moment()
        members = self._company(course)
        if self._is_closed or not members:
            return None
        course.ask_of(members)
        others = choice.usable(members, course.avoid)
        tried = retry.Tried(
            n_left=self._settings.retries + 1 - course.n_tries,
            left_s=course.until - self._clock(),
            another=bool(others) and others[0].standing is not Standing.LEFT_OUT,
            rest_s=min((member.server.backoff.left_s for member in members if isinstance(member.error, EngineBusyError)), default=0.0),
            n_waits=course.n_waits,
        )
        wait_s = retry.wait_s(error, tried, self._draw)
        if wait_s is not None and not tried.another:
            course.forgive()
        return wait_s
