"""The database of one workspace as its readers see it.  Everything here blocks, for a millisecond or two.

Invariants: a reader writes nothing and waits for nobody; it takes what was there when it asked.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from monkeycode_lsp.index import languages, store
from monkeycode_lsp.symbols.model import Import, Kind

_MOST_NAMES = 64
_MOST_NEAR = 128
_MOST_FITTING = 32
"""Files that one candidate stands for."""
_MOST_SAME = 32
"""A name with more definitions than that says little about any of them."""
_MOST_FOUND = 64
_LONGEST_S = 0.02
"""Of one question, which takes a millisecond on an idle machine; what was found by then is the answer."""
_STEPS = 1_000
"""Of SQLite's machine, between looks at the clock."""
_PLACES = {"near": 1.0, "folder": 0.5, "rest": 0.25}

Place = Literal["near", "folder", "rest"]


class _Asking(msgspec.Struct, frozen=True):
    """For whom something is looked for."""

    group: str
    files: dict[int, int]
    """The rank of each near file, by its id."""
    path: str
    """The document's own."""

    def place(self, file: int, path: str) -> Place:
        if file in self.files:
            return "near"
        return "folder" if _folder(path) == _folder(self.path) else "rest"


class _Spot(msgspec.Struct, frozen=True):
    """A definition that was found and not yet read."""

    symbol: int
    score: float
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

    def definitions(self, names: Sequence[str], language: str, near: Sequence[str], path: str) -> list[Definition]:
        """Of `names`, in files of a language that `language` calls, without those in `path` itself; the best first."""
        db = self._connection()
        if db is None:
            return []
        asking = _Asking(languages.group(language), self._files(db, near), path)
        wanted = list(dict.fromkeys(names))[:_MOST_NAMES]
        found: list[_Spot] = []
        for name in wanted:
            if time.monotonic() > self._until:
                break
            found += _spots(db, name, asking)
        found.sort(key=lambda spot: (-spot.score, spot.rank))
        return _read(db, found[:_MOST_FOUND])

    def resolve(self, candidates: Sequence[str]) -> list[str]:
        """The known paths that fit the candidates (see `symbols.paths`), in their order."""
        db = self._connection()
        found: dict[str, None] = {}
        for candidate in dict.fromkeys(candidates):
            if db is None or len(found) >= _MOST_NEAR or time.monotonic() > self._until:
                break
            found |= dict.fromkeys(_fitting(db, candidate))
        return list(found)[:_MOST_NEAR]

    def imports_of(self, path: str) -> list[Import]:
        """What a known file imports."""
        db = self._connection()
        row = db.execute("SELECT imports FROM files WHERE path = ?", (path,)).fetchone() if db is not None else None
        return msgspec.msgpack.decode(row[0], type=list[Import]) if row is not None else []

    def names_in(self, path: str) -> list[str]:
        """What a known file defines, in its order."""
        db = self._connection()
        if db is None:
            return []
        rows = db.execute("SELECT s.name FROM files f JOIN symbols s ON s.file = f.id WHERE f.path = ? ORDER BY s.start, s.id", (path,))
        return [name for (name,) in rows]

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

    def _files(self, db: sqlite3.Connection, near: Iterable[str]) -> dict[int, int]:
        """The rank of each near file, by its id."""
        ranks: dict[int, int] = {}
        for path in list(dict.fromkeys(near))[:_MOST_NEAR]:
            row = db.execute("SELECT id FROM files WHERE path = ?", (path,)).fetchone()
            if row is not None:
                ranks.setdefault(row[0], len(ranks))
        return ranks


def _fitting(db: sqlite3.Connection, candidate: str) -> list[str]:
    tail = candidate.removeprefix("*/")
    end = store.backwards(tail)
    values: tuple[str, ...]
    column = "folder_backwards" if tail.endswith("/") else "backwards"
    if tail == candidate:
        query, values = f"{column} = ?", (end,)
    else:
        query, values = f"{column} >= ? AND {column} < ?", (end, f"{end[:-1]}0")  # "0" comes after "/"
    rows = db.execute(f"SELECT path FROM files WHERE {query} ORDER BY path LIMIT ?", (*values, _MOST_FITTING))  # noqa: S608 - ours
    return [path for (path,) in rows]


def _spots(db: sqlite3.Connection, name: str, asking: _Asking) -> list[_Spot]:
    """Each definition of one name."""
    query = "SELECT s.id, s.file, f.path FROM symbols s JOIN files f ON f.id = s.file WHERE s.name = ? AND s.grp = ?"
    rows = db.execute(f"{query} LIMIT ?", (name, asking.group, _MOST_SAME + 1)).fetchall()
    is_common = len(rows) > _MOST_SAME
    if is_common:  # those that count may be further back
        marks = ", ".join("?" * len(asking.files))
        rows = db.execute(f"{query} AND s.file IN ({marks})", (name, asking.group, *asking.files)).fetchall()[:_MOST_SAME]
    rows = [row for row in rows if row[2] != asking.path]
    n_same = _MOST_SAME + 1 if is_common else len(rows)
    n_near = sum(file in asking.files for _, file, _ in rows)
    found = []
    for symbol, file, path in rows:
        place = asking.place(file, path)
        score = _PLACES[place] / max(1, n_near if place == "near" else n_same)
        found.append(_Spot(symbol, score, asking.files.get(file, _MOST_NEAR), place, n_same))
    return found


def _read(db: sqlite3.Connection, spots: Sequence[_Spot]) -> list[Definition]:
    query = (
        "SELECT s.name, s.kind, f.path, s.start, s.end, s.container, s.text, f.level FROM symbols s JOIN files f ON f.id = s.file "
        "WHERE s.id = ?"
    )
    read = []
    for spot in spots:
        row = db.execute(query, (spot.symbol,)).fetchone()
        if row is not None:
            name, kind, path, line, end_line, container, text, level = row
            more = (container, text, level, spot.place, spot.n_same, spot.score)
            read.append(Definition(name, kind, path, line, end_line, *more))
    return read


def _folder(path: str) -> str:
    return path[: path.rfind("/") + 1]
