"""What of the workspace is read anew, and in which order: everything that counts, then whatever changes.

Invariants: only files that have changed are read.  Readers of the database see whole files only.  Work is done in short stretches
with rests between, so that whoever needs the machine has it.
"""

from __future__ import annotations

import logging
import os
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from monkeycode_lsp.context import shapes
from monkeycode_lsp.index import languages, reading, walk
from monkeycode_lsp.index.crashes import Note
from monkeycode_lsp.index.ignoring import Rules
from monkeycode_lsp.index.reading import Text, Why
from monkeycode_lsp.index.store import Entry, Known, Store
from monkeycode_lsp.index.walk import Cut, Folder, Found
from monkeycode_lsp.index.wire import Limits
from monkeycode_lsp.symbols import extraction, imports
from monkeycode_lsp.symbols.model import Symbol
from monkeycode_lsp.syntax.language_ids import family

logger = logging.getLogger(__name__)

_STRETCH_S = 0.2
_REST_S = 0.02
_MOST_TRIES = 5
"""Of a file that changes whenever it is read."""


class Indexer:
    """One workspace, one database.  Raises `sqlite3.Error`; all calls come from one thread."""

    # The mutable state is the rules and the folders (`find_folders`; single folders come and go in `_look_into` and `_forget`), the files
    # to be tried again (`_read`), what was left out and why (`_meet`, `_is_full`), and when the last rest was (`_rest`).

    def __init__(
        self,
        root: Path,
        store: Store,
        note: Note,
        *,
        ignore_files: Sequence[str],
        secret_files: Sequence[str] = (),
        rested: Callable[[Indexer], None],
        rest_s: float = _REST_S,
        limits: Limits = Limits(),  # noqa: B008 - frozen
    ) -> None:
        """`rested` is called after each stretch of work."""
        self._root = root
        self._store = store
        self._note = note
        self._ignore_files = ignore_files
        self._secret_files = secret_files
        self._rested = rested
        self._rest_s = rest_s
        self._limits = limits
        self._rules = Rules(root, ignore_files, secret_files)
        self._since = time.monotonic()
        self.folders: set[str] = set()
        """All that were looked into: relative, `/` at the end, the workspace itself is empty."""
        self.again: dict[str, int] = {}
        """Files that changed while they were read, and how often that was tried."""
        self._cut: dict[str, None] = {}

    @property
    def limits(self) -> str:
        """For people: why not everything is there; empty: it is."""
        return "; ".join(self._cut)

    def find_folders(self) -> None:
        """Which folders count, as the rules are now."""
        self._rules = Rules(self._root, self._ignore_files, self._secret_files)
        found = walk.walk(self._root, self._rules, only_folders=True, limits=self._limits)
        self.folders = {one.path for one in found if isinstance(one, Folder)}

    def everything(self) -> None:
        """Bring the database up to date with the whole workspace.  After `find_folders`."""
        if "" not in self.folders:
            return  # a drive that is not there for now
        self._cut = {}
        gone = self._store.known()
        for found in walk.walk(self._root, self._rules, limits=self._limits):
            self._meet(found, lambda path: gone.pop(path, None))
        for path in gone:
            if path[: path.rfind("/") + 1] in self.folders:
                self._look_at(path)  # it may have come back meanwhile
            else:
                self._store.remove(path)
            self._rest()
        self._end()

    def _meet(self, found: Found | Folder | Cut, known: Callable[[str], Known | None]) -> None:
        match found:
            case Folder(path=path):
                self.folders.add(path)
            case Cut(why=why):
                self._cut[why] = None
            case Found():
                self._take(found, known(found.path))
        self._rest()

    def changed(self, paths: Iterable[str]) -> bool:
        """Look at what may have changed (relative, `/` separated).  False: the rules have, so everything must be looked at."""
        paths = list(paths)
        if any(self._rules.is_source(path) for path in paths):
            return False
        for path in sorted(paths):
            self._look_at(path)
            self._rest()
        self._end()
        return True

    def _look_at(self, path: str) -> None:
        parent = path[: path.rfind("/") + 1]
        if parent not in self.folders:
            self._look_into_new(path)
            return
        try:
            known = (self._root / path).lstat()
        except (OSError, ValueError):
            self._forget(path)
            return
        if stat.S_ISDIR(known.st_mode):
            if self._may_enter(path + "/"):
                self._look_into(path + "/")
            else:
                self._forget(path)
            return
        verdict = self._rules.judge(path)
        is_source = (
            stat.S_ISREG(known.st_mode) and walk.counts(path, self._rules) and verdict.is_quoted and 0 < known.st_size <= walk.MOST_BYTES
        )
        if is_source:
            found = Found(path, known.st_size, known.st_mtime_ns, int(verdict.level))
            self._take(found, self._store.known_file(path))
        else:
            self._forget(path)

    def _look_into_new(self, path: str) -> None:
        """A path in a folder that was not looked into: it is new, or does not count."""
        folder = ""
        for step in path.split("/")[:-1]:
            folder += f"{step}/"
            if folder in self.folders:
                continue
            try:
                is_folder = stat.S_ISDIR((self._root / folder.rstrip("/")).lstat().st_mode)
            except (OSError, ValueError):
                is_folder = False
            if is_folder and self._may_enter(folder):
                self._look_into(folder)
            return

    def _may_enter(self, folder: str) -> bool:
        parent = folder[: folder.rstrip("/").rfind("/") + 1]
        return walk.may_enter(folder, lambda: _names(self._root / parent), self._rules)

    def _look_into(self, folder: str) -> None:
        gone = set(self._store.below(folder))
        for found in walk.walk(self._root, self._rules, folder, limits=self._limits):
            if len(self.folders) >= self._limits.folders:
                break  # the next walk of everything says so
            if isinstance(found, Found):
                gone.discard(found.path)
            self._meet(found, self._store.known_file)
        for path in gone:
            self._store.remove(path)

    def _forget(self, path: str) -> None:
        """It is no file any more that counts, and no folder."""
        self._store.remove(path)
        folder = f"{path}/"
        if folder in self.folders:
            self.folders = {other for other in self.folders if not other.startswith(folder)}
        for inside in self._store.below(folder):
            self._store.remove(inside)

    def _take(self, found: Found, known: Known | None) -> None:
        if known is None and self._is_full():
            return
        if known is None or (known.size, known.mtime_ns) != (found.size, found.mtime_ns):
            self._read(found, known)
        elif known.level != found.level:
            self._store.seen(found.path, size=found.size, mtime_ns=found.mtime_ns, level=found.level)

    def _is_full(self) -> bool:
        """Whether no more files are kept."""
        if self._store.n_files >= self._limits.files:
            self._cut[f"it has more than {self._limits.files:,} files of source"] = None
            return True
        if self._store.size() > self._limits.database_mb * 1_000_000:
            self._cut[f"its database has reached {self._limits.database_mb:,} MB"] = None
            return True
        return False

    def _read(self, found: Found, known: Known | None) -> None:
        path, tries = found.path, self.again.pop(found.path, 0)
        match reading.read(self._root, path):
            case Text() as read:
                if known is not None and known.digest == read.digest:
                    self._store.seen(path, size=read.size, mtime_ns=read.mtime_ns, level=found.level)
                else:
                    self._store.put(self._entry(found, read))
            case Why.CHANGING:
                if tries + 1 < _MOST_TRIES:
                    self.again[path] = tries + 1
            case Why.NOT_WRITTEN:  # noted, so that it is not read again each time
                self._store.put(_empty(found))
            case _:
                self._store.remove(path)

    def _entry(self, found: Found, read: Text) -> Entry:
        entry = msgspec.structs.replace(_empty(found), size=read.size, mtime_ns=read.mtime_ns, digest=read.digest)
        if self._note.spares(found.path):
            return entry
        self._note.reads(found.path)
        try:
            defined, imported = extraction.extract(read.text, entry.language), imports.read(read.text, entry.language)
        except Exception as exc:  # noqa: BLE001 - one odd file must not end the index
            logger.warning("A file could not be understood (%s).", type(exc).__name__)
            return entry
        return msgspec.structs.replace(
            entry,
            symbols=[_without_secrets(symbol) for symbol in defined],
            imports=[found for found in imported if not shapes.find(found.module)],
        )

    def _rest(self) -> None:
        if time.monotonic() - self._since < _STRETCH_S:
            return
        self._end()
        time.sleep(self._rest_s)
        self._since = time.monotonic()

    def _end(self) -> None:
        self._store.commit()
        self._note.clear()
        self._rested(self)


def _empty(found: Found) -> Entry:
    """A file in which nothing is looked for."""
    language = languages.of(found.path)
    return Entry(found.path, found.size, found.mtime_ns, b"", language, family(language), found.level)


def _without_secrets(symbol: Symbol) -> Symbol:
    """What is kept on the disk holds no secret, and no placeholder either: those are a session's own."""
    text, header = _elided(symbol.text), _elided(symbol.header)
    return symbol if (text, header) == (symbol.text, symbol.header) else msgspec.structs.replace(symbol, text=text, header=header)


def _elided(text: str) -> str:
    pieces: list[str] = []
    end = 0
    for first, last in shapes.find(text):
        pieces.append(text[end:first])
        end = last
    return "...".join([*pieces, text[end:]])


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names are all that is wanted
    except OSError:
        return []
