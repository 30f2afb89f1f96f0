"""What the indexes of all workspaces take on disk, for people who ask; and taking them away.  Blocking.

Invariants: to look changes nothing, and nothing is removed but files of our names, and none that a process holds.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from pathlib import Path

import msgspec

from monkeycode_lsp.index import care, store

FOLDER = "index"
"""Below the user's cache folder: a database for each workspace."""
_NAME = re.compile(r"[0-9a-f]{24}")
_PATIENCE_S = 0.5
_TEXT = tuple(ending for ending in care.ENDINGS if ending != ".lock")


class Kept(msgspec.Struct, frozen=True):
    """One workspace's index."""

    folder: str
    """The workspace."""
    files: int
    symbols: int


class Cleared(msgspec.Struct, frozen=True):
    """What became of all of them."""

    workspaces: int = 0
    """That were removed."""
    bytes: int = 0
    """That are free again."""
    held: int = 0
    """Workspaces of which a process fills the database."""


def look(database: Path) -> Kept | None:
    """What one database holds; None: it cannot be read, because it is damaged, being made, or of another version."""
    try:
        with contextlib.closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True, timeout=_PATIENCE_S)) as db:
            return _told(db) if db.execute("PRAGMA user_version").fetchone()[0] == store.VERSION else None
    except (sqlite3.Error, OSError):
        return None


def _told(db: sqlite3.Connection) -> Kept:
    (folder,) = db.execute("SELECT value FROM about WHERE name = 'folder'").fetchone() or ("",)
    files, symbols = (db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in ("files", "symbols"))  # noqa: S608 - ours
    return Kept(str(folder), files, symbols)


def n_bytes(database: Path) -> int:
    """Of one database and what belongs to it."""
    return sum(_size(database.with_suffix(ending)) for ending in care.ENDINGS)


def databases(folder: Path) -> list[Path]:
    """All that there are, also where only a part is left; empty where there is no such folder.  Raises `OSError`."""
    if not folder.is_dir():
        return []
    names = {file.name.partition(".")[0] for file in folder.iterdir() if file.name.endswith(_TEXT)}
    return [folder / f"{name}.db" for name in sorted(names) if _NAME.fullmatch(name)]


def clear(folder: Path) -> Cleared:
    """Remove all that nobody holds.  Raises `OSError`."""
    found = [(n_bytes(database), care.remove(database)) for database in databases(folder)]
    removed = [size for size, is_gone in found if is_gone]
    return Cleared(len(removed), sum(removed), len(found) - len(removed))


def _size(file: Path) -> int:
    try:
        return file.lstat().st_size
    except OSError:
        return 0
