"""The one question that the pipeline asks: is there something for this place already?

`find` answers from this process at once; `look_further` asks the tiers beyond it while the debounce
runs.  What one tier knows, the nearer ones learn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from monkeycode_lsp import clock, threads
from monkeycode_lsp.domain import Origin, Scope, Suggestion, Window
from monkeycode_lsp.recall import record, signature, workspace
from monkeycode_lsp.recall.indent import reindented
from monkeycode_lsp.recall.memory import Memory
from monkeycode_lsp.recall.near import Near
from monkeycode_lsp.recall.record import Record
from monkeycode_lsp.recall.showings import Showings
from monkeycode_lsp.recall.table import Table
from monkeycode_lsp.recall.tier import Reach, Tier

_THREAD = "workspace"


_QUIET_S = 0.02
_LATEST_S = 0.5
"""What is to be kept waits for a moment of quiet: a thread that writes beside the next ask costs that one two milliseconds."""


class Finished(msgspec.Struct, frozen=True):
    """A finished suggestion and the place it was made for, as the table keeps it."""

    scope: Scope
    window: Window
    suggestion: Suggestion
    born: float
    """By the memory's clock."""

    @property
    def text(self) -> str:
        return self.suggestion.text

    whole = True
    running = False


class _Spot(msgspec.Struct, frozen=True):
    """Where something is looked up."""

    uri: str
    scope: Scope
    window: Window
    place: signature.Place

    @property
    def key(self) -> bytes:
        """On this machine."""
        return signature.key(self.scope.own, self.place)


class Recall:
    """Table, memory, and the tiers beyond; near hits and what became of what was shown beside them."""

    # The mutable state is that of its parts, the last place that was made, what is still to be put into the tiers, the workspaces' identities, the tasks
    # that find them out and the one that reads documents.

    def __init__(
        self,
        memory: Memory,
        *,
        tiers: Sequence[Tier] = (),
        showings: int = 3,
        identify: Callable[[str], str] = workspace.identity,
    ) -> None:
        self.table = Table()
        self.near = Near()
        self.showings = Showings(showings)
        self._memory = memory
        self._tiers = tuple(tiers)
        self._identify = identify
        self._last: _Spot | None = None
        self._unkept: list[tuple[Tier, bytes, Record]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._put_by = 0.0
        self._identities: dict[str, str] = {}
        self._identifying: dict[str, asyncio.Task[None]] = {}
        self._reading: asyncio.Task[None] | None = None

    def find(self, uri: str, scope: Scope, window: Window) -> Suggestion | None:
        """A finished suggestion that agrees with the text as it is now.

        What the user has typed a part of comes first: it was made for this very document.
        """
        while (found := self.table.find(uri, scope, window)) is not None:
            made = found.made
            if isinstance(made, Finished) and self._memory.is_fresh(made.born):
                origin = Origin.TYPED_THROUGH if found.rest.n_typed else Origin.MEMORY
                return msgspec.structs.replace(made.suggestion, text=found.rest.text, origin=origin)
            self.table.discard(uri, made)
        spot = self._spot(uri, scope, window)
        kept = self._memory.get(spot.key)
        return self._suggestion(spot, kept, Origin.MEMORY) if kept is not None else None

    async def look_further(self, uri: str, scope: Scope, window: Window, *, for_s: float, reach: Reach = Reach.TEAM) -> Suggestion | None:
        """Ask the tiers beyond this process.  Takes `for_s`, or a tier's patience if that is longer; a find ends it at once."""
        tiers = [tier for tier in self._within(reach) if tier.patience_s > 0 and self._knows(tier, scope)]
        if not tiers:
            await asyncio.sleep(for_s)
            return None
        began = clock.now()
        spot = self._spot(uri, scope, window)
        asked = {asyncio.create_task(tier.get(self._key(tier, spot))): tier for tier in tiers}
        try:
            while asked:
                left = began + max(for_s, *(tier.patience_s for tier in asked.values())) - clock.now()
                done, _ = await asyncio.wait(asked, timeout=max(0.0, left), return_when=asyncio.FIRST_COMPLETED)
                if not done:
                    break
                for task in done:
                    tier, kept = asked.pop(task), task.result()
                    found = self._suggestion(spot, kept, tier.origin) if kept is not None else None
                    if kept is not None and found is not None:
                        self._pass_on(tier, spot, kept)
                        return found
            await asyncio.sleep(max(0.0, began + for_s - clock.now()))
        finally:
            for task in asked:
                task.cancel()
        return None

    def meet(self, folder: str) -> None:
        """A workspace is worked in: its name in the team is found out before the first ask."""
        if folder and folder not in self._identifying and any(tier.origin is Origin.SHARED for tier in self._tiers):
            self._identifying[folder] = asyncio.create_task(self._find_out(folder))

    def keep(self, uri: str, scope: Scope, window: Window, suggestion: Suggestion, *, reach: Reach = Reach.TEAM) -> None:
        """Remember a finished, non-empty, cleaned suggestion."""
        if not suggestion.text.strip():
            return
        spot = self._spot(uri, scope, window)
        kept = Record(
            version=record.VERSION,
            text=suggestion.text,
            indent=spot.place.indent,
            confidence=suggestion.confidence,
            engine=scope.engine,
            settings=scope.settings,
        )
        self.table.put(uri, Finished(scope, window, suggestion, self._memory.now()))
        self._memory.put(spot.key, kept)
        self._put_later(spot, kept, self._within(reach))

    def learn(self, scope: Scope, uri: str, language: str, lines: Sequence[str]) -> None:
        """Take the text of a document: what stands there may help at places like it.  It is read a little at a time."""
        self.near.learn(scope.own, uri, language, lines)
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        while self.near.read():  # noqa: ASYNC110 - nothing is waited for: others get their turn
            await asyncio.sleep(0)

    def forget(self, uri: str) -> None:
        """Drop what only helps while the document is open."""
        self.table.forget(uri)
        self.near.forget(uri)

    def forget_all(self) -> None:
        """Drop what this process remembers, and what it knows the user does not want."""
        self.table.clear()
        self.near = Near()
        self._memory.clear()
        self.showings.forget()

    async def aclose(self) -> None:
        """Let the tiers finish what was begun."""
        self._put_all()
        if self._reading is not None:
            self._reading.cancel()
        for task in self._identifying.values():
            task.cancel()
        await asyncio.gather(*(tier.aclose() for tier in self._tiers))

    def _spot(self, uri: str, scope: Scope, window: Window) -> _Spot:
        """The same window is looked up, looked further for and kept, one after the other: its place is made once."""
        if self._last is None or self._last.window is not window or (self._last.uri, self._last.scope) != (uri, scope):
            self._last = _Spot(uri, scope, window, signature.place(window))
        return self._last

    def _suggestion(self, spot: _Spot, kept: Record, origin: Origin) -> Suggestion | None:
        if (kept.engine, kept.settings) != (spot.scope.engine, spot.scope.settings):
            return None
        text = reindented(kept.text, kept.indent, spot.place.indent)
        if not text:
            return None
        suggestion = Suggestion(text, origin=origin, confidence=kept.confidence)
        self.table.put(spot.uri, Finished(spot.scope, spot.window, suggestion, self._memory.born(spot.key)))
        return suggestion

    def _within(self, reach: Reach) -> list[Tier]:
        """The tiers that may hear of a place."""
        return [tier for tier in self._tiers if reach >= (Reach.TEAM if tier.origin is Origin.SHARED else Reach.MACHINE)]

    def _pass_on(self, knew: Tier, spot: _Spot, kept: Record) -> None:
        self._memory.put(spot.key, kept)
        self._put_later(spot, kept, self._tiers[: self._tiers.index(knew)])

    def _put_later(self, spot: _Spot, kept: Record, tiers: Sequence[Tier]) -> None:
        """Once the answer is on its way: a thread that wakes up now would hold it up."""
        self._unkept += [(tier, self._key(tier, spot), kept) for tier in tiers if self._knows(tier, spot.scope)]
        if not self._unkept:
            return
        loop = asyncio.get_running_loop()
        if self._timer is None:
            self._put_by = loop.time() + _LATEST_S
        else:
            self._timer.cancel()
        self._timer = loop.call_at(min(self._put_by, loop.time() + _QUIET_S), self._put_all)

    def _put_all(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for tier, key, kept in self._unkept:
            tier.put(key, kept)
        self._unkept.clear()

    def _key(self, tier: Tier, spot: _Spot) -> bytes:
        if tier.origin is Origin.SHARED:
            return signature.key(spot.scope.among(self._identities[spot.scope.workspace]), spot.place)
        return spot.key

    def _knows(self, tier: Tier, scope: Scope) -> bool:
        """Whether the workspace's name in the team is known, for a tier that needs it.  It is found out on a thread, once."""
        if tier.origin is not Origin.SHARED:
            return True
        if scope.workspace in self._identities:
            # What has no name of its own is not shared: another machine may have something else at that path.
            return self._identities[scope.workspace] not in {"", scope.workspace}
        self.meet(scope.workspace)
        return False

    async def _find_out(self, folder: str) -> None:
        if threads.at_work(_THREAD):  # for another one, whose drive may hang: the next ask tries again
            del self._identifying[folder]
            return
        self._identities[folder] = await threads.run(_THREAD, partial(self._identify, folder))
