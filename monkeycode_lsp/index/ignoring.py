"""The ignore files of one workspace, read where they lie: those of every folder, of the repository around it, and git's own.

What they mean is `context.policy`'s.  Invariant: a file whose name says that it keeps something private counts though it cannot be read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from monkeycode_lsp.context import ignores, secrets
from monkeycode_lsp.context.ignores import IgnoreFile
from monkeycode_lsp.context.policy import Policy, Verdict

_MOST_LEVELS = 64
_EXCLUDE = ".git/info/exclude"


class Rules:
    """Each file is read once; where one has changed, new `Rules` are needed."""

    # The mutable state is what was read so far: the policy of each folder's entries.  It changes in `_policy_of` only.

    def __init__(self, root: Path, names: Sequence[str], secret_files: Sequence[str] = ()) -> None:
        """`names`: of the files that hold rules; what a later one says counts more.  `secret_files`: more patterns of secret files."""
        self._secret_files = tuple(secret_files)
        self._root = root
        self._names = tuple(name for name in names if PurePosixPath(name).name == name)
        self._above, outer = self._outer()
        self._policies: dict[str, Policy] = {"": Policy((*outer, *self._read(root, self._above.rstrip("/"))))}

    def judge(self, path: str) -> Verdict:
        """Of a file, or of a folder where `path` ends in `/`; `/` separated, relative to the workspace."""
        return self._policy_of(_parent(path)).judge(self._above + path)

    def is_secret(self, path: str) -> bool:
        """Whether a file looks by its name like it holds secrets."""
        return secrets.is_secret(path, self._secret_files)

    def is_source(self, path: str) -> bool:
        """Whether a change of this file changes the rules."""
        return PurePosixPath(path).name in self._names or path == _EXCLUDE

    def _policy_of(self, folder: str) -> Policy:
        if folder not in self._policies:
            above = self._policy_of(_parent(folder))
            read = self._read(self._root / folder, (self._above + folder).rstrip("/"))
            self._policies[folder] = Policy((*above.files, *read)) if read else above
        return self._policies[folder]

    def _outer(self) -> tuple[str, list[IgnoreFile]]:
        """The way to the workspace from the top of the repository that it is, or lies in, and the rules found on it."""
        for top in (self._root, *self._root.parents)[:_MOST_LEVELS]:
            git = _git_folder(top / ".git")
            if git is None:
                continue
            steps = self._root.relative_to(top).parts
            data = _data(git / "info" / "exclude")
            files = [ignores.read("", ".gitignore", data)] if data else []
            for n_steps in range(len(steps)):
                files += self._read(top.joinpath(*steps[:n_steps]), "/".join(steps[:n_steps]))
            return "".join(f"{step}/" for step in steps), files
        return "", []  # no repository: what lies above says nothing

    def _read(self, folder: Path, place: str) -> list[IgnoreFile]:
        read = [ignores.read(place, name, data) for name in self._names if (data := _data(folder / name)) != b""]
        return [file for file in read if file.rules or file.fault is not None]


def _parent(path: str) -> str:
    """The folder, `/` at the end; empty: the workspace."""
    return path[: path.rstrip("/").rfind("/") + 1]


def _git_folder(entry: Path) -> Path | None:
    """Where git keeps what it knows of the working tree at whose top `entry` lies; None: this is no top."""
    try:
        if stat.S_ISDIR(entry.stat().st_mode):
            return entry
    except (OSError, ValueError):
        return None
    text = os.fsdecode(_data(entry) or b"")
    if not text.startswith("gitdir:"):
        return None
    git = entry.parent / text.removeprefix("gitdir:").strip()
    common = os.fsdecode(_data(git / "commondir") or b"").strip()
    return git / common if common else git


def _data(path: Path) -> bytes | None:
    """What a file holds; empty: there is none; None: it cannot be read.  A pipe is neither read nor waited for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return b""
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(ignores.MOST_BYTES + 1)
    except OSError:
        return None
    finally:
        os.close(descriptor)
