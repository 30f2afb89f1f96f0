"""The database of one workspace as its readers see it.  Everything here blocks, for a millisecond or two.

Invariants: a reader writes nothing and waits for nobody; it takes what was there when it asked.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from monkeycode_lsp.index import importing, store
from monkeycode_lsp.symbols import modules
from monkeycode_lsp.symbols.model import Import, Kind
from monkeycode_lsp.syntax.language_ids import family

_MOST_NAMES = 64
_MOST_BESIDE = 256
_MOST_SAME = 32
"""A name with more definitions than that says little about any of them."""
_MOST_FOUND = 64
_MOST_OFFERED = 200
"""Definitions of one file of a module."""
_LONGEST_S = 0.02
"""Of one question, which takes a millisecond on an idle machine; what was found by then is the answer."""
_STEPS = 1_000
"""Of SQLite's machine, between looks at the clock."""
_NEAR, _PACKAGE, _FOLDER, _REST = 1.0, 0.9, 0.5, 0.25
"""What a definition is worth by its place."""
_PACKAGED = frozenset({"go", "java", "csharp"})
"""Groups of languages in which a file sees what its folder defines, without an import."""

Place = Literal["near", "folder", "rest"]
_Row = tuple[int, int, str]
"""Ids of a symbol and its file, and that file's path."""


class _Asking(msgspec.Struct, frozen=True):
    """For whom something is looked for."""

    group: str
    ranks: dict[int, int]
    """Of each near file, by its id."""
    path: str
    """The document's own."""
    is_packaged: bool
    """Whether it sees what its folder defines."""
    beside: tuple[int, ...]
    """Those files, if it does."""

    def place(self, file: int, path: str) -> Place:
        if file in self.ranks:
            return "near"
        return "folder" if _folder(path) == _folder(self.path) else "rest"


class _Spot(msgspec.Struct, frozen=True):
    """A definition that was found and not yet read."""

    symbol: int
    score: float
    position: int
    """Of its name among those that are wanted."""
    rank: int
    """Of its file among the near ones."""
    place: Place
    n_same: int


class Definition(msgspec.Struct, frozen=True):
    """Where a name is defined, and what is worth quoting of it."""

    name: str
    kind: Kind
    path: str
    """Relative, `/` separated."""
    line: int
    """0-based; where it begins."""
    end_line: int
    container: str
    """The class (or trait, namespace …) that holds it; empty at the top."""
    text: str
    """Of a member also the first line of its class, unless that is given too."""
    level: int
    """Of `ignores.Level`: how far the text may go."""
    place: Place
    """near: in a file that the document imports; folder: beside the document."""
    n_same: int
    """How many definitions of this name there are, `_MOST_SAME` and one standing for more."""
    score: float
    """Higher is better; 1: the only definition of its name, in a file that the document imports."""


class Finder:
    """Raises `sqlite3.Error`, and `GoneError` once when the database has gone.  All calls come from one thread."""

    # The mutable state is the connection, which file it is to, and until when the present question may last.

    def __init__(self, path: Path, *, longest_s: float = _LONGEST_S) -> None:
        self._path = path
        self._longest_s = longest_s
        self._db: sqlite3.Connection | None = None
        self._file: os.stat_result | None = None
        self._until = 0.0

    def definitions(self, names: Sequence[str], language: str, imported: Sequence[Import], path: str) -> list[Definition]:
        """Of `names`, in files of a language that `language` calls, without those in `path` itself; the best first.

        The first name that is a module (`symbols.modules`) brings what its files offer, before everything else.
        """
        db = self._connection()
        if db is None:
            return []
        module = next(filter(modules.is_wanted, names), "")
        wanted = [name for name in dict.fromkeys(names) if name != module][:_MOST_NAMES]
        half = self._until - self._longest_s / 2  # the rest is for the names
        near = importing.near(db, imported, frozenset(wanted), path, language, is_late=lambda: time.monotonic() > half)
        group = family(language)
        is_packaged = group in _PACKAGED
        asking = _Asking(group, near.ranks, path, is_packaged, _beside(db, path) if is_packaged else ())
        found: list[_Spot] = []
        for position, name in enumerate(wanted):
            if self._is_late():
                break
            found += _spots(db, name, asking, position)
            if name in near.named:
                found += _scored(_in_files(db, near.named[name], asking, list(near.ranks))[:_MOST_SAME], asking, position)
        found.sort(key=lambda spot: (-spot.score, spot.position, spot.rank))
        offered = _offered(db, module, imported, path, language) if module else []
        return offered + _read(db, list({spot.symbol: spot for spot in reversed(found)}.values())[::-1][:_MOST_FOUND])

    def close(self) -> None:
        if self._db is not None:
            with contextlib.suppress(sqlite3.Error):
                self._db.close()
        self._db = self._file = None

    def _connection(self) -> sqlite3.Connection | None:
        """To the file that has the name now, for one question; None: there is none yet."""
        try:
            found = self._path.lstat()
        except OSError as exc:
            if self._db is None:
                return None
            self.close()
            raise store.GoneError from exc
        if self._file is not None and not os.path.samestat(found, self._file):
            self.close()  # it was set aside
        if self._db is None and found.st_size:
            db = sqlite3.connect(self._path, timeout=0.0, isolation_level=None)
            self._db, self._file = db, found
            db.execute("PRAGMA query_only = 1")
            db.execute("PRAGMA cache_size = -4096")
            db.set_progress_handler(lambda: time.monotonic() > self._until + self._longest_s, _STEPS)
        self._until = time.monotonic() + self._longest_s  # not before: it takes longer to open it than to ask it
        if self._db is not None and self._db.execute("PRAGMA user_version").fetchone()[0] != store.VERSION:
            return None  # it is just being made, or by another version
        return self._db

    def _is_late(self) -> bool:
        return time.monotonic() > self._until


def _beside(db: sqlite3.Connection, path: str) -> tuple[int, ...]:
    """The files of the document's package."""
    rows = db.execute("SELECT id FROM files WHERE folder_backwards = ? LIMIT ?", (store.backwards(_folder(path)), _MOST_BESIDE))
    return tuple(id_ for (id_,) in rows)


def _spots(db: sqlite3.Connection, name: str, asking: _Asking, position: int) -> list[_Spot]:
    """Each definition of one name."""
    query = "SELECT s.id, s.file, f.path FROM symbols s JOIN files f ON f.id = s.file WHERE s.name = ? AND s.grp = ?"
    rows = db.execute(f"{query} LIMIT ?", (name, asking.group, _MOST_SAME + 1)).fetchall()
    is_common = len(rows) > _MOST_SAME
    if is_common:  # those that count may be further back
        rows = _in_files(db, name, asking, [*asking.ranks, *asking.beside])[:_MOST_SAME]
    return _scored(rows, asking, position, n_same=_MOST_SAME + 1 if is_common else None)


def _in_files(db: sqlite3.Connection, name: str, asking: _Asking, files: Sequence[int]) -> list[_Row]:
    query = "SELECT s.id, s.file, f.path FROM symbols s JOIN files f ON f.id = s.file WHERE s.name = ? AND s.grp = ? AND s.file IN"
    return db.execute(f"{query} ({', '.join('?' * len(files))})", (name, asking.group, *files)).fetchall()


def _scored(rows: Sequence[_Row], asking: _Asking, position: int, *, n_same: int | None = None) -> list[_Spot]:
    """`n_same`: how many there are, if these are not all."""
    placed = [(symbol, file, asking.place(file, path)) for symbol, file, path in rows if path != asking.path]
    n_same = len(placed) if n_same is None else n_same
    n_at = Counter(place for _, _, place in placed)
    found = []
    for symbol, file, place in placed:
        if place == "near":
            score = _NEAR / n_at[place]
        elif place == "folder":
            score = _PACKAGE / n_at[place] if asking.is_packaged else _FOLDER / n_same
        else:
            score = _REST / n_same
        found.append(_Spot(symbol, score, position, asking.ranks.get(file, importing.MOST_FILES), place, n_same))
    return found


def _offered(db: sqlite3.Connection, name: str, imported: Sequence[Import], path: str, language: str) -> list[Definition]:
    """What the module offers, file by file."""
    group = family(language)
    files = importing.of_module(db, modules.imported_as(name, imported, group), path, language)
    offered = []
    for id_, of in files:
        # What a module of Lua offers are members of its table.
        query = "SELECT name, text FROM symbols WHERE file = ? AND (container = '' OR grp = 'lua') "
        rows = db.execute(query + "ORDER BY start LIMIT ?", (id_, _MOST_OFFERED)).fetchall()
        text = modules.outline(rows, group) if of != path else ""
        if text:
            (level,) = db.execute("SELECT level FROM files WHERE id = ?", (id_,)).fetchone()
            offered.append(Definition(name, "module", of, 0, 0, "", text, level, "near", 1, _NEAR))
    return offered


def _read(db: sqlite3.Connection, spots: Sequence[_Spot]) -> list[Definition]:
    query = (
        "SELECT s.name, s.kind, f.path, s.start, s.end, s.container, s.text, f.level, s.header FROM symbols s JOIN files f ON f.id = s.file "
        "WHERE s.id = ?"
    )
    rows = [(spot, row) for spot in spots if (row := db.execute(query, (spot.symbol,)).fetchone()) is not None]
    classes = {(path, name) for _, (name, kind, path, *_) in rows if kind == "class"}
    read = []
    for spot, (name, kind, path, line, end_line, container, text, level, header) in rows:
        quoted = _inside(header, text) if header and (path, container) not in classes else text
        read.append(Definition(name, kind, path, line, end_line, container, quoted, level, spot.place, spot.n_same, spot.score))
    return read


def _inside(header: str, text: str) -> str:
    """A member as it stands in its class."""
    header, _, indent = header.partition("\n")
    lines = [header, *(f"{indent}{line}" if line else line for line in text.split("\n"))]
    return "\n".join([*lines, "}"] if header.endswith("{") else lines)


def _folder(path: str) -> str:
    return path[: path.rfind("/") + 1]
