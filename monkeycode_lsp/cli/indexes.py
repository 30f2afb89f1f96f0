"""The indexes of workspaces, which editors' servers fill: looked at, read and removed without starting one of those processes.

Invariant: nothing here fails because of them; what cannot be read is as good as not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from monkeycode_lsp import config, folders, threads
from monkeycode_lsp.symbols.model import Import

if TYPE_CHECKING:
    from monkeycode_lsp.index.finding import Definition

_PATIENCE_S = 2.0
"""Of one question to a database that was not asked before, on a disk that may be busy."""
OFF = "`context.index` is false"


class OnDisk(msgspec.Struct, frozen=True, rename="camel"):
    """All of them together."""

    folder: str
    off: str = ""
    """The setting that switches it off; empty: it is on."""
    workspaces: int = 0
    bytes: int = 0


def folder() -> Path:
    """Where they are."""
    from monkeycode_lsp.index import kept  # noqa: PLC0415 - brings SQLite, and `--help` needs none of it

    return folders.cache() / kept.FOLDER


def database(workspace: Path) -> Path:
    """Of one workspace, whether it is there or not."""
    from monkeycode_lsp.index.client import folder_name  # noqa: PLC0415 - as above

    return folder() / f"{folder_name(workspace)}.db"


def on_disk(settings: config.Context) -> OnDisk:
    """How many, and how large."""
    from monkeycode_lsp.index import kept  # noqa: PLC0415 - as above

    try:
        found = kept.databases(folder())
    except OSError:
        found = []
    return OnDisk(str(folder()), "" if settings.index else OFF, len(found), sum(map(kept.n_bytes, found)))


class Reader:
    """What `gathering.Index` wants, of a database that some other process may fill, or none."""

    def __init__(self, workspace: Path) -> None:
        self._database = database(workspace)

    def start(self) -> None:
        """Nothing is: who asks once has no time for an index."""

    async def definitions(self, names: Sequence[str], language: str, imported: Sequence[Import], *, path: str) -> list[Definition]:
        """See `index.client.Index.definitions`."""
        return await threads.run("index reader", partial(_definitions, self._database, names, language, imported, path))

    def changed(self, paths: Iterable[Path]) -> None:
        """Nothing is followed."""

    async def aclose(self) -> None:
        """Nothing was started."""


def _definitions(database: Path, names: Sequence[str], language: str, imported: Sequence[Import], path: str) -> list[Definition]:
    """Blocking."""
    import sqlite3  # noqa: PLC0415 - as above

    from monkeycode_lsp.index.finding import Finder  # noqa: PLC0415 - as above
    from monkeycode_lsp.index.store import GoneError  # noqa: PLC0415 - as above

    finder = Finder(database, longest_s=_PATIENCE_S)
    try:
        return finder.definitions(names, language, imported, path)
    except (sqlite3.Error, GoneError):
        return []
    finally:
        finder.close()
