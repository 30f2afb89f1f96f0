"""What of other places goes into the prompts of a document: gathered beside the debounce, kept from ask to ask.

Invariant: nobody waits for it longer than `context.budgetMs`; what is not found by then is left out, and is
there for the next ask.  Within one line what was chosen stays, unless the engine reads so fast that it does not matter.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

import msgspec

from monkeycode_lsp import clock, config
from monkeycode_lsp.context import enclosing, place, selection, similar
from monkeycode_lsp.context.edits import Edits
from monkeycode_lsp.context.ignores import Level
from monkeycode_lsp.context.place import Place
from monkeycode_lsp.context.policy import ANYWHERE, Verdict
from monkeycode_lsp.context.selection import Selection
from monkeycode_lsp.context.similar import Chunked
from monkeycode_lsp.context.window import relative_path
from monkeycode_lsp.documents import Edited, normal
from monkeycode_lsp.domain import Snapshot, Snippet, Window
from monkeycode_lsp.symbols import imports, names
from monkeycode_lsp.symbols.model import Import
from monkeycode_lsp.text import lf

logger = logging.getLogger(__name__)

MOST_VISITED = similar.MOST_DOCUMENTS
_MOST_REMEMBERED = 64
_PAUSE_S = 0.1
"""A document is read for its passages when there is time: an editor that starts opens many."""
_HEAD_LINES = 400
"""Imports stand there."""
_MOST_IMPORTED = 64
_MOST_LINES = 2_000
_LONGEST_LINE = 400
_MOST_CHARACTERS = 100_000
"""Of a document, to see what it uses."""
FRESH_S = 2.0
"""After so long, what is quoted may be private by now."""
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
    async def definitions(self, names: Sequence[str], language: str, imported: Sequence[Import], *, path: str) -> Sequence[Definition]: ...
    def changed(self, paths: Iterable[Path]) -> None: ...
    async def aclose(self) -> None: ...


MakeIndex = Callable[[str], Index | None]
"""For a workspace by its URI; None: there is no folder, or it is not wanted."""
There = Callable[[Sequence[str]], Awaitable[Collection[str]]]
"""Which of these files there are, by their URIs."""
Judge = Callable[[str, str], Awaitable[Verdict]]
"""(URI of a file, its workspace) → whether its text may be quoted, and how far it may go."""


def no_index(_workspace: str) -> Index | None:
    """Definitions are not looked for."""
    return None


async def anywhere(_uri: str, _workspace: str) -> Verdict:
    """Every file may be quoted everywhere."""
    return ANYWHERE


async def all_there(uris: Sequence[str]) -> Collection[str]:
    """Every file is."""
    return uris


class Gathering:
    """Of one pipeline."""

    # The mutable state is what was chosen for each document and the gathering that runs for it, the passages of the documents
    # that were visited, the edits, the indexes, and how fast the engine reads; it changes in the public methods and `_gather`.

    def __init__(
        self, settings: config.Context, *, make_index: MakeIndex = no_index, judge: Judge = anywhere, there: There = all_there
    ) -> None:
        self.settings = settings
        self._make_index = make_index
        self._judge = judge
        self._find = there
        self._indexes: dict[str, Index | None] = {}
        self._chosen: OrderedDict[tuple[str, bool], Selection] = OrderedDict()
        self._private: dict[tuple[str, bool], frozenset[str]] = {}
        self._judged_at: dict[tuple[str, bool], float] = {}
        self._named: dict[str, frozenset[str]] = {}
        self._changed: dict[str, set[str]] = {}
        self._homes: dict[str, str] = {}
        self._visited: OrderedDict[str, tuple[str, Chunked]] = OrderedDict()
        self._to_read: dict[str, Snapshot] = {}
        self._reading: asyncio.Task[None] | None = None
        self._edits: dict[str, Edits] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._tokens_per_s = 0.0

    # What the editor does

    def opened(self, snapshot: Snapshot) -> None:
        """A document is there; it may be quoted in others from now on."""
        self._homes[snapshot.uri] = home = _home(snapshot)
        if _is_quotable(snapshot):
            path = relative_path(snapshot.uri, home)
            self._edits.setdefault(home, Edits()).opened(snapshot.uri, path, snapshot.language, snapshot.lines)
        self._index(snapshot.workspace)
        self.left(snapshot)

    def left(self, snapshot: Snapshot) -> None:
        """The user goes to another document: read this one as it is now, when there is time."""
        home = _home(snapshot)
        if not self.settings.snippet_tokens or not _is_quotable(snapshot):
            return
        path = relative_path(snapshot.uri, home)
        for (uri, _), chosen in self._chosen.items():
            if self._homes.get(uri) == home and any(one.snippet.path == path for one in chosen.chosen):
                self._changed.setdefault(uri, set()).add(path)  # what is quoted of it may say something else by now
        self._to_read[snapshot.uri] = snapshot
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())

    def edited(self, edited: Edited) -> None:
        """Follow an edit."""
        edits = self._edits.get(self._homes.get(edited.uri, ""))
        if edits is None:
            return
        if edited.spans is None:
            edits.replaced(edited.uri, edited.lines)
            return
        for span in edited.spans:
            edits.note(edited.uri, edited.lines, span.first, span.old_stop, span.new_stop)

    def closed(self, uri: str) -> None:
        """What it says may still be quoted: it was open a moment ago."""
        edits = self._edits.get(self._homes.pop(uri, ""))
        if edits is not None:
            edits.closed(uri)
        self._to_read.pop(uri, None)
        for is_here in (True, False):
            self._chosen.pop((uri, is_here), None)
            self._private.pop((uri, is_here), None)
            self._judged_at.pop((uri, is_here), None)
        for known in (self._named, self._changed):
            known.pop(uri, None)
        self._cancel(uri)

    def saved(self, uri: str, workspace: str, file: Path) -> None:
        """A file was written, by the editor or another program."""
        index = self._indexes.get(workspace)
        if index is not None:
            index.changed([file])
        for edits in self._edits.values():
            edits.forget(uri)
        if uri not in self._homes:
            self._visited.pop(uri, None)  # it may be another file by now, or none
        for (other, _), chosen in self._chosen.items():
            self._changed.setdefault(other, set()).update(_below(file, chosen))

    def forget(self) -> None:
        """What may be quoted is another matter now: choose anew."""
        self._chosen.clear()
        for task in self._running.values():
            task.cancel()
        self._running.clear()

    # What an ask wants

    def begin(self, snapshot: Snapshot, window: Window, *, scale: float, is_here: bool, explicit: bool = False) -> None:
        """Look for what helps at the cursor, unless what was chosen there is still good."""
        uri, budget = snapshot.uri, self.settings.snippet_tokens * scale
        if budget <= 0:
            self._cancel(uri)
            self._chosen.pop((uri, is_here), None)
            return
        chosen = self._chosen.get((uri, is_here))
        grows = self._grows(uri, window)
        stays = chosen is not None and chosen.line == snapshot.line and not (explicit or grows or self._changed.get(uri))
        if stays and clock.now() - self._judged_at.get((uri, is_here), -FRESH_S) < FRESH_S:
            return
        self._cancel(uri)
        if stays:
            task = asyncio.create_task(self._judge_again(snapshot, is_here=is_here))
        else:
            task = asyncio.create_task(self._gather(snapshot, window, budget, is_here=is_here, freely=explicit or grows))
        self._running[uri] = task
        task.add_done_callback(lambda done: self._running.pop(uri, None) if self._running.get(uri) is done else None)

    def _cancel(self, uri: str) -> None:
        running = self._running.pop(uri, None)
        if running is not None:
            running.cancel()

    async def ready(self, uri: str, until: float) -> None:
        """Wait for what `begin` looks for, until then (of the clock) at most."""
        running = self._running.get(uri)
        if running is not None and (left := until - clock.now()) > 0:
            await asyncio.wait({running}, timeout=left)

    def current(self, snapshot: Snapshot, *, is_here: bool) -> tuple[Snippet, ...]:
        """What was chosen last for engines on this machine (`is_here`) or for all, in the order of the prompt."""
        chosen = self._chosen.get((snapshot.uri, is_here))
        return chosen.snippets if chosen is not None else ()

    def is_private(self, snapshot: Snapshot, *, is_here: bool) -> bool:
        """Whether what was chosen holds text that must not leave this machine."""
        private = self._private.get((snapshot.uri, is_here), frozenset())
        return any(snippet.path in private for snippet in self.current(snapshot, is_here=is_here))

    def learn(self, n_read: int | None, first_ms: float) -> None:
        """The engine read so many tokens until its first text came."""
        if n_read is not None and n_read >= _TELLING_TOKENS and first_ms > 0:
            self._tokens_per_s = n_read / first_ms * 1e3

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
        home = _home(snapshot)
        edits = self._edits.get(home)
        found = [
            *enclosing.own(snapshot.lines, at),
            *await self._defined(snapshot, window, at),
            *self._alike(window, at, home),
            *(edits.recent(at) if edits is not None else ()),
        ]
        before = self._chosen.get((uri, is_here), selection.NONE)
        quoted = {snippet.path for snippet in (*found, *before.snippets)}
        allowed, private = await self._allowed(quoted - {at.path}, home, is_here=is_here)
        candidates = [snippet for snippet in found if snippet.path in allowed or snippet.path == at.path]
        before = _only(before, allowed | {at.path})
        changed = frozenset(self._changed.pop(uri, ()))
        chosen = selection.choose(before, lambda: candidates, window, at, budget, changed=changed, explicit=freely)
        self._chosen[uri, is_here] = chosen
        self._private[uri, is_here] = private
        self._judged_at[uri, is_here] = clock.now()
        self._chosen.move_to_end((uri, is_here))
        if len(self._chosen) > _MOST_REMEMBERED:
            oldest, _ = self._chosen.popitem(last=False)
            for known in (self._private, self._judged_at):
                known.pop(oldest, None)
            self._named.pop(oldest[0], None)

    async def _judge_again(self, snapshot: Snapshot, *, is_here: bool) -> None:
        """What was chosen a while ago may be private, or gone, by now."""
        key, home = (snapshot.uri, is_here), _home(snapshot)
        own = relative_path(snapshot.uri, home)
        quoted = {one.path for one in self._chosen[key].snippets} - {own}
        allowed, private = await self._allowed(quoted, home, is_here=is_here)
        if key in self._chosen:
            self._chosen[key] = _only(self._chosen[key], allowed | {own})
            self._private[key], self._judged_at[key] = private, clock.now()

    async def _allowed(self, paths: Iterable[str], home: str, *, is_here: bool) -> tuple[set[str], frozenset[str]]:
        """Those whose text may be quoted to an engine on this machine or to any, and those of them that must not leave it."""
        if not home:
            return set(), frozenset()
        # No name that cannot be written.
        uris = {path: normal(f"{home.rstrip('/')}/{quote(path)}") for path in paths if path == path.encode("utf-8", "replace").decode()}
        there = await self._there(uri for uri in uris.values() if uri not in self._homes)
        asked = [path for path, uri in uris.items() if uri in self._homes or uri in there]
        verdicts = await asyncio.gather(*(self._judge(uris[path], home) for path in asked))
        quoted = {path: verdict.level for path, verdict in zip(asked, verdicts, strict=True) if verdict.is_quoted}
        private = frozenset(path for path, level in quoted.items() if level is Level.LOCAL)
        return (set(quoted), private) if is_here else (quoted.keys() - private, frozenset())

    async def _there(self, uris: Iterable[str]) -> Collection[str]:
        """Those of the files that nobody has open which are there still."""
        asked = list(uris)
        return await self._find(asked) if asked else ()

    async def _defined(self, snapshot: Snapshot, window: Window, at: Place) -> list[Snippet]:
        index = self._index(snapshot.workspace)
        if index is None:
            return []
        close = names.near(window.prefix, window.suffix, window.language)
        self._named[snapshot.uri] = frozenset(close)
        imported = imports.read(lf("".join(snapshot.lines[:_HEAD_LINES])), at.language)
        on_line = [name for name in close if name in window.line_before]
        wanted = list(dict.fromkeys((*on_line, *_unused(imported, snapshot.lines), *close)))
        try:
            found = await index.definitions(wanted, at.language, imported, path=at.path)
        except Exception:
            logger.exception("the index could not be asked")
            return []
        return [Snippet(definition.path, definition.text, kind="definition", score=definition.score) for definition in found]

    def _alike(self, window: Window, at: Place, home: str) -> list[Snippet]:
        """Passages of documents of the same workspace."""
        visited = [chunked for of, chunked in reversed(self._visited.values()) if home and of == home]
        return similar.find(similar.query(window), visited, at) if visited else []

    async def _read(self) -> None:
        """Cut documents into passages, one at a time."""
        while self._to_read:
            await asyncio.sleep(_PAUSE_S)
            if not self._to_read:
                return
            uri = next(reversed(self._to_read))
            snapshot = self._to_read.pop(uri)
            home = _home(snapshot)
            path = relative_path(uri, home)
            passages = similar.chunked(uri, snapshot.version, path, snapshot.language, snapshot.lines, around=snapshot.line)
            self._visited[uri] = (home, passages)
            self._visited.move_to_end(uri)
            if len(self._visited) > MOST_VISITED:
                self._visited.popitem(last=False)


def _only(chosen: Selection, paths: Collection[str]) -> Selection:
    """Without what is quoted of other files."""
    return msgspec.structs.replace(chosen, chosen=tuple(one for one in chosen.chosen if one.snippet.path in paths))


def _unused(imported: Iterable[Import], lines: Sequence[str]) -> list[str]:
    """Names that the document imports and does not use yet: who has written the one will write the other."""
    here = [name for one in imported for name in one.here][:_MOST_IMPORTED]
    text = "".join(line[:_LONGEST_LINE] for line in lines[:_MOST_LINES])[:_MOST_CHARACTERS] if here else ""
    return [name for name in here if text.count(name) == 1]


def _home(snapshot: Snapshot) -> str:
    """The folder whose files may be quoted in the document: the workspace, or what is beside a file of none; empty: nothing is."""
    return snapshot.workspace or (snapshot.uri.rpartition("/")[0] if snapshot.uri.startswith("file:") else "")


def _is_quotable(snapshot: Snapshot) -> bool:
    """Whether the document is a file below its home, so that others can quote it by its path."""
    home = _home(snapshot)
    return bool(home) and snapshot.uri.startswith(normal(home).rstrip("/") + "/")


def _below(file: Path, chosen: Selection) -> set[str]:
    """The paths of what was chosen that may be this file."""
    whole = file.as_posix()
    return {one.snippet.path for one in chosen.chosen if whole.endswith("/" + one.snippet.path)}
