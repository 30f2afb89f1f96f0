"""What of other places goes into the prompts of a document: gathered beside the debounce, kept from ask to ask.

Invariant: nobody waits for it longer than `context.budgetMs`; what is not found by then is left out, and is
there for the next ask.  Within one line what was chosen stays, unless the engine reads so fast that it does not matter.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from monkeycode_lsp import clock, config
from monkeycode_lsp.context import enclosing, place, selection, similar
from monkeycode_lsp.context.edits import Edits
from monkeycode_lsp.context.ignores import Level
from monkeycode_lsp.context.place import Place
from monkeycode_lsp.context.policy import ANYWHERE, Verdict
from monkeycode_lsp.context.selection import Selection
from monkeycode_lsp.context.similar import Chunked
from monkeycode_lsp.context.window import relative_path
from monkeycode_lsp.documents import Edited
from monkeycode_lsp.domain import Snapshot, Snippet, Window
from monkeycode_lsp.symbols import imports, names, paths
from monkeycode_lsp.text import lf

logger = logging.getLogger(__name__)

MOST_VISITED = similar.MOST_DOCUMENTS
_MOST_REMEMBERED = 64
_PAUSE_S = 0.1
"""A document is read for its passages when there is time: an editor that starts opens many."""
_HEAD_LINES = 400
"""Imports stand there."""
_NEAR_MODULES = 24
_FAST_S = 0.15
"""A window that is read anew so quickly may have other snippets in the middle of a line."""
_TELLING_TOKENS = 64


class Definition(Protocol):
    """What an index tells of a name."""

    @property
    def path(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def score(self) -> float: ...


class Index(Protocol):
    """Where things are defined in one workspace; see `index.client`."""

    def start(self) -> None: ...
    async def definitions(self, names: Sequence[str], language: str, near: Sequence[str], *, path: str) -> Sequence[Definition]: ...
    def changed(self, paths: Iterable[Path]) -> None: ...
    async def aclose(self) -> None: ...


MakeIndex = Callable[[str], Index | None]
"""For a workspace by its URI; None: there is no folder, or it is not wanted."""
Judge = Callable[[str, str], Verdict]
"""(workspace, relative path) → whether its text may be quoted, and how far it may go."""


def no_index(_workspace: str) -> Index | None:
    """Definitions are not looked for."""
    return None


def anywhere(_workspace: str, _path: str) -> Verdict:
    """Every file may be quoted everywhere."""
    return ANYWHERE


class Gathering:
    """Of one pipeline."""

    # The mutable state is what was chosen for each document and the gathering that runs for it, the passages of the documents
    # that were visited, the edits, the indexes, and how fast the engine reads; it changes in the public methods and `_gather`.

    def __init__(self, settings: config.Context, *, make_index: MakeIndex = no_index, judge: Judge = anywhere) -> None:
        self.settings = settings
        self._make_index = make_index
        self._judge = judge
        self._indexes: dict[str, Index | None] = {}
        self._chosen: OrderedDict[str, Selection] = OrderedDict()
        self._named: dict[str, frozenset[str]] = {}
        self._changed: dict[str, set[str]] = {}
        self._visited: OrderedDict[str, tuple[str, Chunked]] = OrderedDict()
        self._to_read: dict[str, Snapshot] = {}
        self._reading: asyncio.Task[None] | None = None
        self._edits = Edits()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._tokens_per_s = 0.0

    # What the editor does

    def opened(self, snapshot: Snapshot) -> None:
        """A document is there; it may be quoted in others from now on."""
        path = relative_path(snapshot.uri, snapshot.workspace)
        self._edits.opened(snapshot.uri, path, snapshot.language, snapshot.lines)
        self._index(snapshot.workspace)
        self.left(snapshot)

    def left(self, snapshot: Snapshot) -> None:
        """The user goes to another document: read this one as it is now, when there is time."""
        if not self.settings.snippet_tokens:
            return
        self._to_read[snapshot.uri] = snapshot
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())

    def edited(self, edited: Edited) -> None:
        """Follow an edit."""
        if edited.spans is None:
            self._edits.replaced(edited.uri, edited.lines)
            return
        for span in edited.spans:
            self._edits.note(edited.uri, edited.lines, span.first, span.old_stop, span.new_stop)

    def closed(self, uri: str) -> None:
        """What it says may still be quoted: it was open a moment ago."""
        self._edits.closed(uri)
        self._to_read.pop(uri, None)
        for known in (self._chosen, self._named, self._changed):
            known.pop(uri, None)
        task = self._running.pop(uri, None)
        if task is not None:
            task.cancel()

    def saved(self, workspace: str, files: Sequence[Path]) -> None:
        """Files were written, by the editor or another program."""
        index = self._indexes.get(workspace)
        if index is not None:
            index.changed(files)
        for uri, chosen in self._chosen.items():
            self._changed.setdefault(uri, set()).update(_below(files, chosen))

    # What an ask wants

    def begin(self, snapshot: Snapshot, window: Window, *, scale: float, is_here: bool, explicit: bool = False) -> None:
        """Look for what helps at the cursor, unless what was chosen there is still good."""
        uri, budget = snapshot.uri, self.settings.snippet_tokens * scale
        chosen = self._chosen.get(uri)
        grows = self._grows(uri, window)
        if chosen is not None and chosen.line == snapshot.line and not (explicit or grows or self._changed.get(uri)):
            return
        running = self._running.pop(uri, None)
        if running is not None:
            running.cancel()
        if budget > 0:
            task = asyncio.create_task(self._gather(snapshot, window, budget, is_here=is_here, freely=explicit or grows))
            self._running[uri] = task
            task.add_done_callback(lambda done: self._running.pop(uri, None) if self._running.get(uri) is done else None)

    async def ready(self, uri: str, until: float) -> None:
        """Wait for what `begin` looks for, until then (of the clock) at most."""
        running = self._running.get(uri)
        if running is not None and (left := until - clock.now()) > 0:
            await asyncio.wait({running}, timeout=left)

    def current(self, snapshot: Snapshot, *, is_here: bool) -> tuple[Snippet, ...]:
        """What was chosen last and may be quoted still, in the order of the prompt; `is_here`: it stays on this machine."""
        chosen = self._chosen.get(snapshot.uri)
        if chosen is None:
            return ()
        own = relative_path(snapshot.uri, snapshot.workspace)
        return tuple(one for one in chosen.snippets if self._may_quote(snapshot.workspace, one, own, is_here=is_here))

    def learn(self, n_read: int | None, first_ms: float) -> None:
        """The engine read so many tokens until its first text came."""
        if n_read is not None and n_read >= _TELLING_TOKENS and first_ms > 0:
            self._tokens_per_s = n_read / first_ms * 1e3

    def statuses(self) -> dict[str, Index]:
        """The indexes that there are, by workspace."""
        return {workspace: index for workspace, index in self._indexes.items() if index is not None}

    async def aclose(self) -> None:
        """Stop everything that runs for it."""
        tasks = [*self._running.values(), *([self._reading] if self._reading is not None else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await asyncio.gather(*(index.aclose() for index in self._indexes.values() if index is not None))

    def _index(self, workspace: str) -> Index | None:
        if workspace not in self._indexes:
            made = self._make_index(workspace) if self.settings.index and self.settings.snippet_tokens else None
            if made is not None:
                made.start()
            self._indexes[workspace] = made
        return self._indexes[workspace]

    def _grows(self, uri: str, window: Window) -> bool:
        """Whether a name was typed that nothing was looked up for, and the engine reads fast enough to care."""
        n_tokens = self.settings.prefix_tokens + self.settings.suffix_tokens
        if self._tokens_per_s * _FAST_S < n_tokens or uri not in self._named:
            return False
        return not self._named[uri].issuperset(names.near(window.prefix, window.suffix, window.language))

    async def _gather(self, snapshot: Snapshot, window: Window, budget: float, *, is_here: bool, freely: bool) -> None:
        uri, at = snapshot.uri, place.of(snapshot, window)
        wanted = names.near(window.prefix, window.suffix, window.language)
        defined = await self._defined(snapshot, at, wanted)

        def candidates() -> list[Snippet]:
            found = [*enclosing.own(snapshot.lines, at), *defined, *self._alike(window, at, snapshot.workspace), *self._edits.recent(at)]
            return [snippet for snippet in found if self._may_quote(snapshot.workspace, snippet, at.path, is_here=is_here)]

        changed = frozenset(self._changed.pop(uri, ()))
        before = self._chosen.get(uri, selection.NONE)
        self._named[uri] = frozenset(wanted)
        self._chosen[uri] = selection.choose(before, candidates, window, at, budget, changed=changed, explicit=freely)
        self._chosen.move_to_end(uri)
        if len(self._chosen) > _MOST_REMEMBERED:
            oldest, _ = self._chosen.popitem(last=False)
            self._named.pop(oldest, None)

    def _may_quote(self, workspace: str, snippet: Snippet, own: str, *, is_here: bool) -> bool:
        if snippet.path == own:
            return True
        verdict = self._judge(workspace, snippet.path)
        return verdict.is_quoted and (is_here or verdict.level is Level.ANYWHERE)

    async def _defined(self, snapshot: Snapshot, at: Place, wanted: Sequence[str]) -> list[Snippet]:
        index = self._index(snapshot.workspace)
        if index is None or not wanted:
            return []
        head = lf("".join(snapshot.lines[:_HEAD_LINES]))
        near = [path for imported in imports.read(head, at.language) for path in paths.resolve(imported, at.path, at.language)]
        try:
            found = await index.definitions(wanted, at.language, near[:_NEAR_MODULES], path=at.path)
        except Exception:
            logger.exception("the index could not be asked")
            return []
        return [Snippet(definition.path, definition.text, kind="definition", score=definition.score) for definition in found]

    def _alike(self, window: Window, at: Place, workspace: str) -> list[Snippet]:
        """Passages of documents of the same workspace."""
        visited = [chunked for of, chunked in reversed(self._visited.values()) if of == workspace]
        return similar.find(similar.query(window), visited, at) if visited else []

    async def _read(self) -> None:
        """Cut documents into passages, one at a time."""
        while self._to_read:
            await asyncio.sleep(_PAUSE_S)
            if not self._to_read:
                return
            uri = next(reversed(self._to_read))
            snapshot = self._to_read.pop(uri)
            path = relative_path(uri, snapshot.workspace)
            passages = similar.chunked(uri, snapshot.version, path, snapshot.language, snapshot.lines, around=snapshot.line)
            self._visited[uri] = (snapshot.workspace, passages)
            self._visited.move_to_end(uri)
            if len(self._visited) > MOST_VISITED:
                self._visited.popitem(last=False)


def _below(files: Iterable[Path], chosen: Selection) -> set[str]:
    """The paths of what was chosen that may be one of these files."""
    whole = [file.as_posix() for file in files]
    return {one.snippet.path for one in chosen.chosen if any(file.endswith("/" + one.snippet.path) for file in whole)}
