"""What the ignore files of one workspace say: those of every folder, and of the repository around it.

How they are read is `privacy.ignore_files`', what they mean is `context.policy`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from monkeycode_lsp.context import secrets
from monkeycode_lsp.context.ignores import IgnoreFile
from monkeycode_lsp.context.policy import Policy, Verdict
from monkeycode_lsp.privacy import ignore_files


class Rules:
    """Each file is read once; where one has changed, new `Rules` are needed."""

    # The mutable state is what was read so far: the policy of each folder's entries.  It changes in `_policy_of` only.

    def __init__(self, root: Path, names: Sequence[str], secret_files: Sequence[str] = ()) -> None:
        """`names`: of the files that hold rules; what a later one says counts more.  `secret_files`: more patterns of secret files."""
        self._secret_files = tuple(secret_files)
        self._root = root
        self.is_of_disk = root.parent == root
        """Whether the workspace is all there is."""
        self._names = ignore_files.usable(names)
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
        return PurePosixPath(path).name in self._names or f"/{path}".endswith(f"/{ignore_files.EXCLUDE}")

    def _policy_of(self, folder: str) -> Policy:
        if folder not in self._policies:
            above = self._policy_of(_parent(folder))
            read = self._read(self._root / folder, (self._above + folder).rstrip("/"))
            self._policies[folder] = Policy((*above.files, *read)) if read else above
        return self._policies[folder]

    def _outer(self) -> tuple[str, list[IgnoreFile]]:
        """The way to the workspace from the top of the repository that it is, or lies in, and the rules found on it."""
        top = ignore_files.top((self._root, *self._root.parents))
        if top is None:
            return "", []  # no repository: what lies above says nothing
        steps = self._root.relative_to(top).parts
        files: list[IgnoreFile] = []
        for n_steps in range(len(steps)):
            files += self._read(top.joinpath(*steps[:n_steps]), "/".join(steps[:n_steps]))
        return "".join(f"{step}/" for step in steps), files

    def _read(self, folder: Path, place: str) -> list[IgnoreFile]:
        read = [found.file for _, found in ignore_files.of_folder(folder, place, self._names, shown=f"{place}/" if place else "")]
        return [file for file in read if file.rules or file.fault is not None]


def _parent(path: str) -> str:
    """The folder, `/` at the end; empty: the workspace."""
    return path[: path.rstrip("/").rfind("/") + 1]
