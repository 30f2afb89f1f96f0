"""What lies on disk, looked at and removed from outside, while windows use it.  Everything here blocks.

Invariants: looking creates nothing.  Nothing is removed but regular files of our names; what a link leads to is never touched.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import stat
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec

from monkeycode_lsp.errors import StorageError
from monkeycode_lsp.recall import disk_folder
from monkeycode_lsp.recall.disk_store import DAMAGED, FILE, JOURNAL
from monkeycode_lsp.recall.disk_trouble import TroubleError

TROUBLES = (OSError, sqlite3.Error, TroubleError)
"""What the functions here raise; `disk_trouble` has the words."""
_LOCK_S = 1.0
_COUNT = "SELECT COUNT(*), TOTAL(expire_time < ?), MIN(store_time), MAX(store_time) FROM Cache WHERE typeof(store_time) = 'real'"


class Kept(msgspec.Struct, frozen=True):
    """What a folder holds."""

    n: int = 0
    n_expired: int = 0
    """Of those, how many are no longer used; they go when room is made."""
    n_bytes: int = 0
    """On disk."""
    oldest: float | None = None
    """Unix time at which it was put there."""
    newest: float | None = None


def look(folder: Path) -> Kept:
    """What is kept there; nothing, if there is no such folder."""
    try:
        disk_folder.check(folder)
    except FileNotFoundError:
        return Kept()
    n_bytes = _n_bytes(folder)
    path = folder / FILE
    if not path.exists() or not path.stat().st_size:  # nobody has begun it
        return Kept(n_bytes=n_bytes)
    with closing(_connect(path)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'Cache'").fetchone():
            return Kept(n_bytes=n_bytes)
        n, n_expired, oldest, newest = connection.execute(_COUNT, (time.time(),)).fetchone()
    return Kept(n=n, n_expired=int(n_expired), n_bytes=n_bytes, oldest=oldest, newest=newest)


def try_out(folder: Path) -> None:
    """Raise what would keep a window from keeping anything there."""
    there = next(near for near in (folder, *folder.absolute().parents) if near.exists())
    if not there.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(there))
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(there))
    if there != folder:
        return  # it can be created
    disk_folder.check(folder)
    with contextlib.suppress(FileNotFoundError):
        os.close(disk_folder.opened(folder / disk_folder.SECRET, os.O_RDONLY))
        os.close(disk_folder.opened(folder / FILE, os.O_RDWR))  # SQLite would be content to read
        disk_folder.check_file(folder / JOURNAL)
        with closing(_connect(folder / FILE)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")


def clear(folder: Path, *, replace: Callable[[str, Path], None] = os.replace) -> int:
    """Remove all suggestions; the bytes that are free again.

    An empty file takes the database's place, so it works whoever holds a lock, and windows that are open
    begin anew without a word.  The folder's secret stays: they go on with it.
    """
    disk_folder.check(folder)
    before, path = _n_bytes(folder), folder / FILE
    if not path.exists() or _begun_anew(path, replace):
        (folder / JOURNAL).unlink(missing_ok=True)  # of a database that is gone
    (folder / DAMAGED).unlink(missing_ok=True)
    return max(0, before - _n_bytes(folder))


def files(folder: Path) -> list[Path]:
    """Those of ours that are there and hold suggestions.  Raises `StorageError` where something else has such a name."""
    found = []
    for path in (folder / name for name in (FILE, JOURNAL, DAMAGED)):
        try:
            kind = path.lstat().st_mode
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(kind):
            raise StorageError(f"{path} is a link or a folder, so it is none of ours.", remedy="Remove it by hand if it is yours.")
        found.append(path)
    return found


def _n_bytes(folder: Path) -> int:
    return sum(path.lstat().st_size for path in files(folder))


def _begun_anew(path: Path, replace: Callable[[str, Path], None]) -> bool:
    """Whether an empty file is in its place; if not, it is there as before and its rows are gone."""
    descriptor, draft = tempfile.mkstemp(prefix=f"{path.stem}.", dir=path.parent)
    os.close(descriptor)
    try:
        replace(draft, path)
    except PermissionError:  # Windows leaves a file in its place while a window has it open
        with closing(_connect(path)) as connection:
            connection.execute("PRAGMA secure_delete = 1")
            connection.execute("DELETE FROM Cache")
        return False
    finally:
        Path(draft).unlink(missing_ok=True)
    return True


def _connect(path: Path) -> sqlite3.Connection:
    """To a database that is there; it is not created."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=_LOCK_S, isolation_level=None)
