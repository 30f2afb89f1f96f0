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
_ENDINGS = (".db", ".db-wal", ".db-shm", ".damaged", ".reads", ".lock")


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
                    _remove(database)


def _remove(database: Path) -> None:
    lock = Lock(database.with_suffix(".lock"))
    try:
        if lock.is_free():
            for ending in _ENDINGS:
                database.with_suffix(ending).unlink(missing_ok=True)
    finally:
        lock.release()
