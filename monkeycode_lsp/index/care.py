"""Databases of workspaces that nobody opens any more are taken away.

Invariant: nothing is removed but files of our names, and none that a process holds.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from monkeycode_lsp.index.lock import Lock

_UNUSED_S = 60 * 86_400.0
ENDINGS = (".db", ".db-wal", ".db-shm", ".damaged", ".reads", ".lock")
"""Of the files of one workspace."""


def used(database: Path) -> None:
    """Note that it is in use."""
    with contextlib.suppress(OSError):
        os.utime(database)


def sweep(folder: Path, *, unused_s: float = _UNUSED_S) -> None:
    """Remove what was not used for so long.  Never fails."""
    with contextlib.suppress(OSError):
        for database in folder.glob("*.db"):
            with contextlib.suppress(OSError):
                if time.time() - database.lstat().st_mtime > unused_s:
                    remove(database)


def remove(database: Path) -> bool:
    """Take one away with all that belongs to it; False: a process holds it, and nothing is done.  Raises `OSError`."""
    own = database.with_suffix(".lock")
    lock = Lock(own)
    try:
        if not lock.is_free():
            return False
        for ending in ENDINGS:
            if ending != own.suffix:
                database.with_suffix(ending).unlink(missing_ok=True)
        with contextlib.suppress(PermissionError):  # Windows keeps what is open, as this is; it is empty
            own.unlink(missing_ok=True)
    finally:
        lock.release()
    return True
