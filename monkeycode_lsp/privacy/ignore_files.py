"""The ignore files of one folder, read where they lie: those of the setting, and what git keeps beside its repository.  Blocking.

What they mean is `context.policy`'s.  Invariant: a file that cannot be read is told from one that is not there, and nothing
that is no plain file is waited for.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from monkeycode_lsp.context import ignores
from monkeycode_lsp.context.ignores import IgnoreFile

MOST_LEVELS = 128
"""Folders above a file that are looked at."""
GIT = ".gitignore"
EXCLUDE = ".git/info/exclude"
"""Patterns of the repository that are for this machine only.  They count where `.gitignore` does, and before it."""
_CAREFULLY = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

Signature = tuple[int, ...]
"""Changes when a file does; empty: nothing is known of it."""


class Read(msgspec.Struct, frozen=True):
    """One file as it was read."""

    signature: Signature
    file: IgnoreFile


Kept = Mapping[Path, Read]
"""What was read last, wherever its folder was counted from then."""


def top(folders: Sequence[Path]) -> Path | None:
    """The first that is the top of a repository."""
    return next((folder for folder in folders[:MOST_LEVELS] if _git(folder) is not None), None)


def of_folder(folder: Path, place: str, names: Sequence[str], *, shown: str = "", kept: Kept | None = None) -> Iterator[tuple[Path, Read]]:
    """Each that is there; what a later one says counts more.

    `place`: the folder, relative to where paths are counted from.  `shown`: what people call it, if that is something else.
    """
    git = _git(folder) if GIT in names else None
    sources = [(git / "info" / "exclude", GIT, EXCLUDE)] if git is not None else []
    sources += [(folder / name, name, name) for name in names]
    for source, name, called in sources:
        read = _read(source, name, kept.get(source) if kept else None)
        if read is not None:
            words = f"{shown or place}/{called}".lstrip("/") if not shown.startswith("/") else f"{shown.rstrip('/')}/{called}"
            yield source, Read(read.signature, msgspec.structs.replace(read.file, folder=place, shown=words))
