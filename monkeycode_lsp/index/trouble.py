"""What can be wrong with the database of the index, and what the user is told about it (pure)."""

from __future__ import annotations

import enum
import errno
import sqlite3
from pathlib import Path


class Trouble(enum.Enum):
    """One kind of trouble."""

    DAMAGED = "the database was damaged"
    LOCKED = "another program keeps the database locked"
    FULL = "there is no space left on the disk"
    UNUSABLE = "the cache folder cannot be used"


_REMEDY = {
    Trouble.DAMAGED: "It is set aside and a new one begun.  If it happens again, check that disk.",
    Trouble.LOCKED: "It is tried again every few minutes.  If it stays so, end that program.",
    Trouble.FULL: "It is tried again every few minutes.  Free some space.",
    Trouble.UNUSABLE: "Make it a folder of your own that you can write to.",
}
_ANEW = frozenset({
    sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH,
})  # fmt: skip
"""Our statements are right, so what they meet is not."""
_LOCKED = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_FULL = frozenset({errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)})


def of(error: BaseException) -> Trouble:
    """What an exception of the store means; by its code, never by its words."""
    if isinstance(error, OSError):
        return Trouble.FULL if error.errno in _FULL else Trouble.UNUSABLE
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return Trouble.DAMAGED  # values of a kind that we never put there
    code &= 0xFF
    if code == sqlite3.SQLITE_FULL:
        return Trouble.FULL
    return Trouble.LOCKED if code in _LOCKED else Trouble.DAMAGED if code in _ANEW else Trouble.UNUSABLE


def sentence(trouble: Trouble, folder: Path, error: BaseException) -> str:
    """For the user."""
    why = f" ({error.strerror})" if isinstance(error, OSError) and error.strerror and trouble is Trouble.UNUSABLE else ""
    text = f"Definitions of other files are not found for now: {trouble.value}{why}, in {folder}.  {_REMEDY[trouble]}"
    return text.encode("utf-8", "replace").decode()
