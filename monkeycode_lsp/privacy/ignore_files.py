"""The ignore files of one folder, read where they lie: those of the setting, and what git keeps beside its repository.  Blocking.

What they mean is `context.policy`'s.  Invariant: a file that cannot be read is told from one that is not there, and nothing
that is no plain file is waited for.
"""

from __future__ import annotations

import errno
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


def usable(names: Sequence[str]) -> tuple[str, ...]:
    """Those that are names of files."""
    return tuple(name for name in names if name and Path(name).name == name)


def top(folders: Sequence[Path]) -> Path | None:
    """The first that is the top of a repository."""
    return next((folder for folder in folders[:MOST_LEVELS] if _git(folder) is not None), None)


def of_folder(folder: Path, place: str, names: Sequence[str], *, shown: str, kept: Kept | None = None) -> Iterator[tuple[Path, Read]]:
    """Each that is there; what a later one says counts more.

    `place`: the folder, relative to where paths are counted from.  `shown`: the same for people, `/` at the end unless it is empty.
    """
    git = _git(folder) if GIT in names else None
    sources = [(git / "info" / "exclude", GIT, EXCLUDE)] if git is not None else []
    sources += [(folder / name, name, name) for name in names]
    for source, name, called in sources:
        read = _read(source, name, kept.get(source) if kept else None)
        if read is not None:
            yield source, Read(read.signature, msgspec.structs.replace(read.file, folder=place, shown=f"{shown}{called}"))


def _read(source: Path, name: str, before: Read | None) -> Read | None:
    """Read only if it is not what was read before; None: there is none."""
    try:
        state = source.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError:
        return Read((), ignores.read("", name, None))
    signature = (state.st_mtime_ns, state.st_ctime_ns, state.st_size, state.st_ino, state.st_dev)
    if before is not None and before.signature == signature:
        return before
    try:
        return Read(signature, ignores.read("", name, _data(source) if stat.S_ISREG(state.st_mode) else None))
    except FileNotFoundError:
        return None
    except OSError:
        return Read((), ignores.read("", name, None))


def _git(folder: Path) -> Path | None:
    """Where git keeps what it knows of the working tree whose top is `folder`; None: that is no top."""
    entry = folder / ".git"
    try:
        mode = entry.stat().st_mode
        if stat.S_ISDIR(mode):
            return entry
        text = os.fsdecode(_data(entry)) if stat.S_ISREG(mode) else ""
    except (OSError, ValueError):
        return None
    if not text.startswith("gitdir:"):
        return None
    git = folder / text.removeprefix("gitdir:").strip()
    try:
        common = os.fsdecode(_data(git / "commondir")).strip()
    except (OSError, ValueError):
        common = ""
    return git / common if common else git


def _data(path: Path) -> bytes:
    """What a plain file holds, as far as it is worth reading.  Raises `OSError`."""
    with open(path, "rb", opener=lambda name, _: os.open(name, _CAREFULLY)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "no plain file")
        return file.read(ignores.MOST_BYTES + 1)
