"""The remote engine: completions from servers that the user or the team runs.

One endpoint is asked as it is.  Several are a pool: those that serve the same model share the work, the others stand in.
"""

from __future__ import annotations

import asyncio
import importlib.util
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing

from monkeycode_lsp import config
from monkeycode_lsp.domain import Chunk, Prompt
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.engines.remote import address
from monkeycode_lsp.engines.remote.endpoint import Endpoint
from monkeycode_lsp.engines.remote.pool import groups, hedging, neighbours
from monkeycode_lsp.engines.remote.pool.dispatch import Dispatcher
from monkeycode_lsp.engines.remote.pool.member import Member, Server
from monkeycode_lsp.engines.remote.pool.probing import Prober
from monkeycode_lsp.engines.remote.pool.roster import Roster
from monkeycode_lsp.engines.remote.stream.reading import Limits
from monkeycode_lsp.engines.remote.terms import Notify
from monkeycode_lsp.errors import EngineBusyError, EngineError, EngineUnavailableError, StaysHereError

Connect = Callable[[config.Endpoint], Server]
"""Makes the server of one endpoint.  Raises an `EngineError` if its settings cannot be used."""


class RemoteEngine:
    """All endpoints of the settings.

    The mutable state is the pool, made at first use, so that a wrong address is told to who asks, and what the user was told.
    """

    def __init__(self, *, settings: config.Remote, notify: Notify, environ: Mapping[str, str], connect: Connect | None = None) -> None:
        self._settings = settings
        self._notify = notify
        self._environ = environ
        self._connect = connect or self._endpoint
        self._made: _Pool | None = None
        self._told_http2 = False

    async def ready(self) -> Model:
        """See `Engine.ready`."""
        return await self._pool().ready()

    def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        """See `Engine.stream`."""
        return self._pool().stream(prompt)

    async def reachable(self) -> bool:
        """Whether any server is there and could answer.  Looks now, and raises nothing."""
        try:
            pool = self._pool()
        except EngineError:
            return False
        return await pool.reachable()

    @property
    def members(self) -> tuple[Member, ...]:
        """The endpoints and what is known of them; none before the first use."""
        return self._made.members if self._made is not None else ()

    async def aclose(self) -> None:
        """See `Engine.aclose`."""
        if self._made is not None:
            await self._made.aclose()

    def _pool(self) -> _Pool:
        if self._made is None:
            self._made = self._make()
        return self._made

    def _make(self) -> _Pool:
        members: list[Member] = []
        used: list[tuple[config.Endpoint, address.Address]] = []
        errors: list[EngineError] = []
        found = self._found(errors)
        mean = sum(endpoint.weight for endpoint, _ in found) / max(1, len(found))
        for endpoint, where in found:
            try:
                server = self._connect(endpoint)
            except EngineError as exc:
                errors.append(exc)
                continue
            metered = hedging.is_metered(endpoint.metered, where.host)
            members.append(Member(server, base=where.base, weight=endpoint.weight / mean, metered=metered))
            used.append((endpoint, where))
        neighbours.introduce(members)
        if not members and errors:
            raise errors[0]
        if not members:
            raise EngineUnavailableError(
                "No server is set that could complete code.", remedy="Add one to `remote.endpoints`, or set `engine` to `local`."
            )
        for error in errors:
            self._notify(f"An endpoint is left out: {error}")
        return _Pool(tuple(members), self._settings, digest=groups.digest(used), notify=self._notify)

    def _found(self, errors: list[EngineError]) -> list[tuple[config.Endpoint, address.Address]]:
        found: list[tuple[config.Endpoint, address.Address]] = []
        for endpoint in self._settings.endpoints:
            try:
                found.append((endpoint, address.parse(endpoint.url)))
            except EngineError as exc:
                errors.append(exc)
        return neighbours.merge(found)

    def _endpoint(self, endpoint: config.Endpoint) -> Server:
        limits = Limits(first_s=self._settings.timeout_ms / 1e3, stall_s=self._settings.stall_ms / 1e3)
        return Endpoint(endpoint, limits=limits, http2=self._speaks_http2(), notify=self._notify, environ=self._environ)

    def _speaks_http2(self) -> bool:
        if not self._settings.http2 or importlib.util.find_spec("h2") is not None:
            return self._settings.http2
        if not self._told_http2:
            self._told_http2 = True
            self._notify("`remote.http2` needs the package h2 (pip install h2); HTTP/1.1 is used.")
        return False


class _Pool:
    """The members and those who decide about them."""

    def __init__(self, members: tuple[Member, ...], settings: config.Remote, *, digest: str, notify: Notify) -> None:
        self.members = members
        clock = time.monotonic
        self._roster = Roster(members, digest=digest, notify=notify, came_back=self._came_back)
        self._prober = Prober(members, self._roster, clock=clock, came_back=self._came_back)
        self._dispatcher = Dispatcher(settings, roster=self._roster, prober=self._prober, clock=clock)

    async def ready(self) -> Model:
        if self._roster.is_alone:
            return await self._roster.refresh(self.members[0])
        self._prober.used()
        group = await self._roster.ready()
        for member in group.members:
            if member.is_good:
                member.server.keep_warm()
        return group.model

    def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        if self._roster.is_alone:
            return self._dispatcher.stream(prompt, _allowed(self.members, prompt))
        self._prober.used()
        if not prompt.model:
            return self._stream_of_any(prompt)
        group = self._roster.group(prompt.model)
        if group is None:
            raise EngineBusyError("No endpoint serves the model any more that was to be asked.", remedy="Ask again.")
        return self._dispatcher.stream(prompt, _allowed(group.members, prompt))

    async def reachable(self) -> bool:
        return await self._prober.reachable()

    async def aclose(self) -> None:
        await self._dispatcher.aclose()
        await self._prober.aclose()
        await self._roster.aclose()
        await asyncio.gather(*(member.server.aclose() for member in self.members))

    async def _stream_of_any(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        group = await self._roster.ready()
        async with aclosing(self._dispatcher.stream(prompt, _allowed(group.members, prompt))) as chunks:
            async for chunk in chunks:
                yield chunk

    def _came_back(self, member: Member) -> None:
        self._dispatcher.came_back(member, self.members)


def _allowed(members: Sequence[Member], prompt: Prompt) -> Sequence[Member]:
    """Raises `StaysHereError` if none of them may see it."""
    allowed = groups.allowed(members, prompt)
    if not allowed:
        raise StaysHereError("none of `remote.endpoints` that serves the model is on it")
    return allowed
