"""The database of one workspace as the process that fills it sees it.  Everything here blocks.

Invariants: one process writes at a time (`lock.Lock`), and readers never wait for it (write-ahead log).  What is in it was read from files of
the workspace, without what looks like a secret, and may be thrown away at any time.  Nobody but this user can open it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from monkeycode_lsp.symbols.model import Import, Symbol

VERSION = 3
"""Of the tables and of what is put into them: another one is begun anew."""
_LOCK_S = 2.0
_MOST_SYMBOLS = 5_000
"""Of one file."""

_TABLES = """
CREATE TABLE files (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, backwards TEXT NOT NULL, folder_backwards TEXT NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, digest BLOB NOT NULL,
    language TEXT NOT NULL, level INTEGER NOT NULL, imports BLOB NOT NULL
);
CREATE TABLE symbols (
    id INTEGER PRIMARY KEY, file INTEGER NOT NULL, grp TEXT NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, container TEXT NOT NULL,
    start INTEGER NOT NULL, end INTEGER NOT NULL, text TEXT NOT NULL, header TEXT NOT NULL
);
CREATE INDEX files_backwards ON files (backwards);
CREATE INDEX files_folder ON files (folder_backwards);
CREATE INDEX symbols_name ON symbols (name, grp, file);
CREATE INDEX symbols_file ON symbols (file);
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
_STATEMENTS = tuple(filter(None, map(str.strip, _TABLES.split(";"))))
_PUT_FILE = (
    "INSERT INTO files (path, backwards, folder_backwards, size, mtime_ns, digest, language, level, imports) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_PUT_SYMBOL = "INSERT INTO symbols (file, grp, name, kind, container, start, end, text, header) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


class Known(msgspec.Struct, frozen=True):
    """What the database knows of a file, to see whether it has changed."""

    size: int
    mtime_ns: int
    level: int
    digest: bytes


class Entry(msgspec.Struct, frozen=True):
    """One file, read anew."""

    path: str
    size: int
    mtime_ns: int
    digest: bytes
    language: str
    group: str
    level: int
    symbols: Sequence[Symbol] = ()
    imports: Sequence[Import] = ()


class GoneError(Exception):
    """The database was deleted, or another put in its place."""


class Store:
    """Raises `sqlite3.Error`, `OSError` and `GoneError`.  Changes are kept by `commit` only."""

    # The mutable state is the connection and which file it is to, set by `open`, whether it holds changes (SQLite's), and how many
    # files are known, which `put` and `remove` change.

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: sqlite3.Connection
        self._file: os.stat_result
        self.n_files = 0

    def open(self, about: dict[str, str]) -> None:
        """Create what is missing; what was written for another workspace, or by another version, is begun anew."""
        self._file = touch(self._path)
        self._db = sqlite3.connect(self._path, timeout=_LOCK_S, isolation_level=None)
        try:
            self._db.execute("PRAGMA journal_mode = WAL")
            # After a power failure the last changes may be missing; they are read again from the workspace.
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute("PRAGMA cache_size = -8192")
            # What is no longer to be quoted is not to lie there either.
            self._db.execute("PRAGMA secure_delete = ON")
            self._db.execute("PRAGMA journal_size_limit = 16777216")
            if self._db.execute("PRAGMA user_version").fetchone()[0] != VERSION or not self._is_for(about):
                self._begin_anew(about)
            self.n_files, _ = self._db.execute("SELECT COUNT(*), MAX(id) FROM files").fetchone()  # a damaged one says so now
        except BaseException:
            self.close()
            raise

    def known(self) -> dict[str, Known]:
        """Every file, by its path."""
        rows = self._db.execute("SELECT path, size, mtime_ns, level, digest FROM files")
        return {path: Known(*rest) for path, *rest in rows}

    def counts(self) -> tuple[int, int]:
        """How many files and symbols."""
        return self.n_files, self._db.execute("SELECT COUNT(*) FROM symbols").fetchone()[0]

    def size(self) -> int:
        """In bytes, without what can be used again."""
        pages, free, size = (self._db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size"))
        return int((pages - free) * size)

    def put(self, entry: Entry) -> None:
        """Replace what is known of the file."""
        self._begin()
        self.remove(entry.path)
        where = (entry.path, backwards(entry.path), backwards(entry.path[: entry.path.rfind("/") + 1]))
        what = (entry.size, entry.mtime_ns, entry.digest, entry.language, entry.level, msgspec.msgpack.encode(entry.imports))
        file = self._db.execute(_PUT_FILE, (*where, *what)).lastrowid
        self.n_files += 1
        self._db.executemany(
            _PUT_SYMBOL,
            ((file, entry.group, *_row(symbol)) for symbol in entry.symbols[:_MOST_SYMBOLS]),
        )

    def seen(self, path: str, *, size: int, mtime_ns: int, level: int) -> None:
        """The file holds what it held, though its date or what may be done with it is another."""
        self._begin()
        self._db.execute("UPDATE files SET size = ?, mtime_ns = ?, level = ? WHERE path = ?", (size, mtime_ns, level, path))

    def remove(self, path: str) -> None:
        """Forget a file, if it is known."""
        self._begin()
        self._db.execute("DELETE FROM symbols WHERE file = (SELECT id FROM files WHERE path = ?)", (path,))
        self.n_files -= self._db.execute("DELETE FROM files WHERE path = ?", (path,)).rowcount

    def known_file(self, path: str) -> Known | None:
        """What is known of one file."""
        row = self._db.execute("SELECT size, mtime_ns, level, digest FROM files WHERE path = ?", (path,)).fetchone()
        return Known(*row) if row is not None else None

    def below(self, folder: str) -> list[str]:
        """The files of a folder (`/` at the end) and of those in it."""
        # "0" is the character after "/".
        rows = self._db.execute("SELECT path FROM files WHERE path >= ? AND path < ?", (folder, f"{folder[:-1]}0"))
        return [path for (path,) in rows]

    def commit(self) -> None:
        """Readers see what was changed.  Raises `GoneError` though there was nothing."""
        self._check()
        if self._db.in_transaction:
            self._db.execute("COMMIT")

    def tidy(self) -> None:
        """After much was written: short logs, and figures for the query planner."""
        self._db.execute("PRAGMA optimize")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error):  # it may be the reason why it is closed
            self._db.close()

    def set_aside(self) -> None:
        """Keep the damaged database, the newest only, for whoever wants to look at it."""
        self._path.replace(self._path.with_suffix(".damaged"))
        for ending in ("-wal", "-shm"):
            self._path.with_name(self._path.name + ending).unlink(missing_ok=True)

    def _begin(self) -> None:
        if not self._db.in_transaction:
            self._check()
            self._db.execute("BEGIN IMMEDIATE")

    def _check(self) -> None:
        """SQLite goes on with a file that no longer has a name.  Raises `GoneError`."""
        try:
            is_ours = os.path.samestat(self._path.lstat(), self._file)
        except FileNotFoundError:
            is_ours = False
        if not is_ours:
            raise GoneError

    def _is_for(self, about: dict[str, str]) -> bool:
        """Whether it has our tables, and what it says of itself."""
        made = {
            sql
            for (sql,) in self._db.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite!_%' ESCAPE '!'")
        }
        return made == set(_STATEMENTS) and dict(self._db.execute("SELECT name, value FROM about").fetchall()) == about

    def _begin_anew(self, about: dict[str, str]) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        names = [
            row[0]
            for row in self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'")
        ]
        for name in names:
            self._db.execute('DROP TABLE "{}"'.format(name.replace('"', '""')))
        for statement in _STATEMENTS:
            self._db.execute(statement)
        self._db.executemany("INSERT INTO about VALUES (?, ?)", about.items())
        self._db.execute(f"PRAGMA user_version = {VERSION}")
        self._db.execute("COMMIT")


def _row(symbol: Symbol) -> tuple[str | int, ...]:
    """As SQLite can keep it: half a surrogate pair is no text."""
    words = (_clean(symbol.name), symbol.kind, _clean(symbol.container))
    return (*words, symbol.start_line, symbol.end_line, _clean(symbol.text), _clean(symbol.header))


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def backwards(path: str) -> str:
    """Paths that end alike begin alike so, and what begins alike is found by an index."""
    return f"/{path}"[::-1]


def own(folder: Path) -> None:
    """Create it for this user only, or see that it is so: source text lies there.  Raises `OSError`."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if sys.platform != "win32":  # the user's own folders are private there
        if folder.stat().st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "it belongs to another user")
        if folder.stat().st_mode & 0o077:
            folder.chmod(0o700)


def touch(path: Path) -> os.stat_result:
    """Create the file for this user only unless it is there, so that nothing else chooses its mode."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)
