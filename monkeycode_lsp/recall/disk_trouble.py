"""What can be wrong with the suggestions on disk, and what the user is told about it.

SQLite says the same with many words, and the cache library hides some of them: `of` goes by codes, never by messages.
"""

from __future__ import annotations

import enum
import errno
import sqlite3
from pathlib import Path

import msgspec


class Trouble(enum.Enum):
    """One kind of trouble."""

    OTHERS_FOLDER = "belongs to another user"
    OPEN_FOLDER = "others can write there"
    FOREIGN_FILE = "holds a file that is not ours"
    UNUSABLE = "cannot be created, read or written"
    LOCKED = "another program holds the lock"
    FULL = "no space left"
    IO = "calls fail: a failing disk, or a network drive without file locks"
    DAMAGED = "is no database of ours (any more)"
    GONE = "was deleted while in use"
    REPLACED = "another window began anew"


class TroubleError(Exception):
    """What we found out ourselves."""

    def __init__(self, trouble: Trouble, why: str = "") -> None:
        super().__init__(why or trouble.value)
        self.trouble = trouble


class _Words(msgspec.Struct, frozen=True):
    what: str
    remedy: str


_MEMORY = "so suggestions are kept in memory only"
_ELSEWHERE = "set `cache.directory` to a folder of your own on this machine's disk"
_LATER = "It is tried again every minute."

_WORDS = {
    Trouble.OTHERS_FOLDER: _Words(
        f"The cache folder {{folder}} belongs to another user, {_MEMORY}.", "Set `cache.directory` to a folder of your own."
    ),
    Trouble.OPEN_FOLDER: _Words(
        f"Other users can write to the cache folder {{folder}}, {_MEMORY}.",
        "Run `chmod go-w` on it, or set `cache.directory` to a folder of your own.",
    ),
    Trouble.FOREIGN_FILE: _Words(
        f"The cache folder {{folder}} cannot be used ({{why}}), {_MEMORY}.",
        "Remove that file, or set `cache.directory` to a folder of your own.",
    ),
    Trouble.UNUSABLE: _Words(
        f"The cache folder {{folder}} cannot be used ({{why}}), {_MEMORY}.",
        "Make it a folder that you can write to, or set `cache.directory` to one.",
    ),
    Trouble.LOCKED: _Words(
        f"Another program keeps the database in the cache folder {{folder}} locked, {_MEMORY} for now.",
        f"{_LATER}  If it stays so, end that program, or {_ELSEWHERE}.",
    ),
    Trouble.FULL: _Words(
        f"There is no space left on the disk of the cache folder {{folder}}, {_MEMORY} for now.",
        f"{_LATER}  Free some space, or set `cache.directory` to a folder on another disk.",
    ),
    Trouble.IO: _Words(
        f"The disk of the cache folder {{folder}} answers with errors ({{why}}), {_MEMORY} for now.",
        f"{_LATER}  Network drives often cannot lock files: {_ELSEWHERE}.",
    ),
    Trouble.DAMAGED: _Words(
        "The database in the cache folder {folder} was damaged; it is set aside and a new one begun.",
        "If it happens again, check that disk, or set `cache.directory` to a folder on another one.",
    ),
    Trouble.GONE: _Words(
        "The cache folder {folder}, or the database in it, was deleted while in use; a new one is begun.",
        "Set `cache.diskTtlSeconds` to 0 to keep nothing on disk.",
    ),
}

_CODES = {
    sqlite3.SQLITE_BUSY: Trouble.LOCKED,
    sqlite3.SQLITE_LOCKED: Trouble.LOCKED,
    sqlite3.SQLITE_FULL: Trouble.FULL,
    sqlite3.SQLITE_CORRUPT: Trouble.DAMAGED,
    sqlite3.SQLITE_NOTADB: Trouble.DAMAGED,
    sqlite3.SQLITE_SCHEMA: Trouble.DAMAGED,
    sqlite3.SQLITE_ERROR: Trouble.DAMAGED,  # our statements are right, so the tables are not
    sqlite3.SQLITE_CONSTRAINT: Trouble.DAMAGED,
    sqlite3.SQLITE_MISMATCH: Trouble.DAMAGED,
    sqlite3.SQLITE_TOOBIG: Trouble.DAMAGED,
    sqlite3.SQLITE_READONLY: Trouble.UNUSABLE,
    sqlite3.SQLITE_READONLY_DBMOVED: Trouble.GONE,
    sqlite3.SQLITE_CANTOPEN: Trouble.UNUSABLE,
    sqlite3.SQLITE_PERM: Trouble.UNUSABLE,
    sqlite3.SQLITE_AUTH: Trouble.UNUSABLE,
}
_ERRNOS = {errno.ENOSPC: Trouble.FULL, errno.EDQUOT: Trouble.FULL, errno.EIO: Trouble.IO, errno.ESTALE: Trouble.IO}


def of(error: BaseException) -> Trouble:
    """What an exception of the store means."""
    cause = _root(error)
    if isinstance(cause, TroubleError):
        return cause.trouble
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_IOERR)
        return _CODES.get(code, _CODES.get(code & 0xFF, Trouble.IO))
    if isinstance(cause, OSError):
        return _ERRNOS.get(cause.errno or 0, Trouble.UNUSABLE)
    return Trouble.DAMAGED  # the library met something in the tables that it never put there


def sentence(trouble: Trouble, folder: Path, error: BaseException) -> str:
    """For the user; empty where there is nothing to tell."""
    return "  ".join(filter(None, told(trouble, folder, error)))


def told(trouble: Trouble, folder: Path, error: BaseException) -> tuple[str, str]:
    """What is wrong and what mends it; both empty where there is nothing to tell."""
    words = _WORDS.get(trouble)
    if words is None:
        return "", ""
    cause = _root(error)
    why = (cause.strerror if isinstance(cause, OSError) else None) or str(cause)
    # File names may hold bytes that are no text, and what is said must be text.
    return words.what.format(folder=folder, why=why).encode("utf-8", "replace").decode(), words.remedy


def _root(error: BaseException) -> BaseException:
    """The exception that began it: a time-out or a failed roll-back hides what was wrong."""
    while error.__context__ is not None and not isinstance(error, TroubleError | OSError):
        error = error.__context__
    return error
