"""Records in a `diskcache` database: everything here blocks, and raises whatever goes wrong.

Invariants: nothing is ever pickled or unpickled, and no file but the database is written or removed, whatever its tables say.
What lies there is a keyed hash of the key and a sealed record, so a torn page can cost a record but never show a wrong one.
The record's age is sealed with it: whoever reads it decides how old it may be.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import diskcache

from monkeycode_lsp.recall import disk_folder
from monkeycode_lsp.recall.disk_trouble import Trouble, TroubleError
from monkeycode_lsp.recall.record import MOST_BYTES, Record, decode, encode
from monkeycode_lsp.recall.seal import Seal

FILE = "suggestions.db"
"""Not the library's own name: a folder that another program uses with it is left alone."""
JOURNAL = f"{FILE}-journal"
"""SQLite's, while it writes or after a crash."""
DAMAGED = "suggestions.damaged"
"""Where a damaged one is set aside."""
_OPEN_LOCK_S = 5.0
"""Several windows may begin at once, each with some fifty small statements."""
_LOCK_S = 2.0
"""A healthy transaction takes less than a millisecond."""
_NAME_BYTES = 16
_BORN = struct.Struct(">d")
"""When the record was put there, in Unix time."""
_MOST_ROW_BYTES = 2 * MOST_BYTES
"""A row of ours is a record and a little more; SQLite refuses a longer one without reading it."""
_NO_FILES = 2**31

Connect = Callable[[Path, float], sqlite3.Connection]
"""Opens a connection that waits so many seconds for a lock."""

_SETTINGS = {
    # A look-up changes nothing on disk and needs no lock of a writer; the most recently used would be written at each.
    "eviction_policy": "least-recently-stored",
    "cull_limit": 10,
    "statistics": 0,
    "tag_index": 0,
    "disk_min_file_size": _NO_FILES,
    "sqlite_auto_vacuum": 1,  # the file shrinks when records go: its length decides whether they must
    "sqlite_cache_size": 256,
    # Write-ahead logs need memory that is shared through a file: network drives have none, and a process whose
    # mapped file is cut off dies.  The same is true of a mapped database.
    "sqlite_journal_mode": "delete",
    "sqlite_mmap_size": 0,
    # After a power failure the file may be damaged; it is set aside then.  Waiting for the disk would cost each write.
    "sqlite_synchronous": 0,
}


class LockedError(sqlite3.OperationalError):
    """Somebody else holds the lock, for longer than we wait.  The library tries again for a minute unless it is called otherwise."""


class Connection(sqlite3.Connection):
    """Tells a lock in words of its own."""

    def execute(self, sql: str, parameters: tuple[object, ...] = (), /) -> sqlite3.Cursor:  # type: ignore[override]  # all that is used
        try:
            return super().execute(sql, parameters)
        except sqlite3.OperationalError as exc:
            if getattr(exc, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
                raise LockedError("locked by another program") from exc
            raise


def connect(path: Path, lock_s: float) -> sqlite3.Connection:
    """A connection of one thread."""
    return sqlite3.connect(path, timeout=lock_s, isolation_level=None, factory=Connection)


class _Values(diskcache.Disk):  # type: ignore[misc]  # the library has no types
    """Bytes in, bytes out; anything else in the tables is a miss."""

    def put(self, key: bytes) -> tuple[memoryview, bool]:
        return memoryview(key), True

    def get(self, key: object, raw: object) -> NoReturn:
        raise NotImplementedError  # only listing the keys would need it

    def store(self, value: bytes, read: bool, key: object = None) -> tuple[int, int, None, memoryview]:  # noqa: ARG002, FBT001 - the library's signature
        return 0, diskcache.core.MODE_RAW, None, memoryview(value)

    def fetch(self, mode: object, filename: object, value: object, read: bool) -> bytes:  # noqa: ARG002, FBT001 - the library's signature
        return value if mode == diskcache.core.MODE_RAW and isinstance(value, bytes) else b""

    def remove(self, file_path: object) -> None:
        """There are no files; a name in the tables is somebody else's."""


class _Cache(diskcache.Cache):  # type: ignore[misc]  # the library has no types
    """The library's cache over one connection of our own."""

    def __init__(self, path: Path, connect: Connect, size_limit: int) -> None:
        self._path = path
        self._connect = connect
        self._connection: sqlite3.Connection | None = None
        self._lock_s = _OPEN_LOCK_S
        try:
            # The library expands variables in the folder's name and creates that folder; the one given here is not used further.
            super().__init__(os.sep, disk=_Values, size_limit=size_limit, **_SETTINGS)
            self._con.execute(f"PRAGMA busy_timeout = {round(1000 * _LOCK_S)}")
        except BaseException:
            self.close()
            raise

    @property
    def _con(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect(self._path, self._lock_s)
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_ROW_BYTES)
            for name in ("cache_size", "mmap_size", "synchronous"):  # of a connection, not of the file
                self._connection.execute(f"PRAGMA {name} = {_SETTINGS[f'sqlite_{name}']}")
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Store:
    """One database.  All calls come from one thread and may raise anything."""

    # The mutable state is the open cache, its seal and which file it is; they are set by `open`, once.
    _seal: Seal
    _cache: _Cache

    def __init__(
        self, folder: Path, *, ttl_s: float, most_bytes: int, connect: Connect, wall_clock: Callable[[], float] = time.time
    ) -> None:
        self._folder = folder
        self._path = folder / FILE
        self._ttl_s = ttl_s
        self._most_bytes = most_bytes
        self._connect = connect
        self._wall_clock = wall_clock
        self._file: os.stat_result | None = None

    def open(self) -> None:
        """Create what is missing."""
        disk_folder.prepare(self._folder)
        self._seal = Seal(disk_folder.secret(self._folder), name_bytes=_NAME_BYTES)
        self._file = disk_folder.touch(self._path)
        disk_folder.check_file(self._folder / JOURNAL)
        self._cache = _Cache(self._path, self._connect, self._most_bytes)

    def get(self, key: bytes) -> Record | None:
        self._check()
        name = self._seal.name(key)
        try:
            value = self._cache.get(name, b"")
        except sqlite3.DataError:  # too long to be ours
            return None
        sealed = self._seal.opened(name, value)
        if sealed is None or len(sealed) < _BORN.size:
            return None
        (born,) = _BORN.unpack_from(sealed)
        # One from the future was put there before the clock was set back: it counts as new.
        return decode(sealed[_BORN.size :]) if self._wall_clock() - born < self._ttl_s else None

    def put(self, key: bytes, record: Record) -> None:
        self._check()
        try:
            data = encode(record)
        except UnicodeEncodeError:  # half a surrogate pair
            return
        if len(data) <= MOST_BYTES:
            name = self._seal.name(key)
            sealed = _BORN.pack(self._wall_clock()) + data
            self._cache.set(name, self._seal.sealed(name, sealed), expire=self._ttl_s)

    def close(self) -> None:
        self._cache.close()

    def set_aside(self) -> None:
        """Keep the damaged database, the newest only, for whoever wants to look at it."""
        if self._is_ours():  # else another window was faster
            # A journal that it leaves behind is no danger: SQLite deletes it when it meets an empty database beside it.
            self._path.replace(self._folder / DAMAGED)

    def _check(self) -> None:
        """SQLite goes on with a file that no longer has a name."""
        if not self._is_ours():
            raise TroubleError(Trouble.REPLACED)

    def _is_ours(self) -> bool:
        """Whether the file that was opened is still the one of that name."""
        try:
            found = self._path.lstat()  # a link to it is not it
        except (FileNotFoundError, NotADirectoryError):
            raise TroubleError(Trouble.GONE) from None
        return self._file is not None and os.path.samestat(found, self._file)
