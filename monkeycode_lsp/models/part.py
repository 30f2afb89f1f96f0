"""The file of an unfinished download: `NAME.part`, always a prefix of the wanted file, whoever wrote it.

It becomes the model file only by `complete`, when size and hash are right; until then it can be
continued by any source, in this process or a later one.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from monkeycode_lsp.errors import DownloadError

_BLOCK = 1 << 20


class WrongContentError(DownloadError):
    """What arrived is not the file that was asked for."""


class UnreachableError(DownloadError):
    """The source did not answer at all."""


class NotHereError(DownloadError):
    """The source works and does not have this file, as was to be expected."""


class DiskError(DownloadError):
    """The disk is full or may not be written: no other source can help."""


class PartFile:
    """An open `.part` file.

    The mutable state is the file, `size` and the running hash; they change together, in `write`,
    `cut` and while the file is opened.
    """

    def __init__(self, path: Path, *, report: Callable[[int, int], None]) -> None:
        """Open or continue `path`; `report` hears how much of it has been read again, of how much that is here."""
        self.path = path
        self.size = 0
        self._digest = hashlib.sha256()
        self._report = report

    def __enter__(self) -> Self:
        try:
            self._file = self.path.open("r+b" if self.path.exists() else "w+b")
        except OSError as exc:
            raise disk_error(exc, self.path) from exc
        try:
            self._hash_up_to(self.path.stat().st_size)
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self._file.close()
        except OSError as failure:
            if exc is None:
                raise disk_error(failure, self.path) from failure
        if self.size == 0:
            self.path.unlink(missing_ok=True)

    def _hash_up_to(self, size: int) -> None:
        self._digest = hashlib.sha256()
        self._file.seek(0)
        self.size = 0
        while self.size < size and (block := self._file.read(min(_BLOCK, size - self.size))):
            self._digest.update(block)
            self.size += len(block)
            self._report(self.size, size)

    def write(self, data: bytes) -> None:
        """Append."""
        try:
            self._file.write(data)
        except OSError as exc:
            raise disk_error(exc, self.path) from exc
        self._digest.update(data)
        self.size += len(data)

    def flush(self) -> None:
        """Hand what was written to the system."""
        try:
            self._file.flush()
        except OSError as exc:
            raise disk_error(exc, self.path) from exc

    def cut(self, size: int) -> None:
        """Keep only the first `size` bytes."""
        if size < self.size:
            self._file.flush()
            self._file.truncate(size)
            self._hash_up_to(size)
            self._file.seek(size)

    def complete(self, target: Path, *, size: int | None, sha256: str) -> str:
        """Make it the model file at `target` and return its SHA-256; a wrong file is deleted and raises."""
        found = self._digest.hexdigest()
        problem = ""
        if size is not None and self.size != size:
            problem = f"it has {self.size} bytes instead of {size}"
        elif sha256 and found != sha256:
            problem = f"its SHA-256 is {found[:12]}… instead of {sha256[:12]}…"
        if problem:
            self._file.close()
            self.path.unlink()
            raise WrongContentError(f"What arrived is not the file that was asked for: {problem}. It was deleted.")
        self.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self.path.replace(target)
        return found


def disk_error(exc: OSError, path: Path) -> DiskError:
    """What went wrong with the disk, in the user's words."""
    if exc.errno in {errno.ENOSPC, errno.EDQUOT}:
        return DiskError(
            f"The disk is full: {path.parent} has no room left.", remedy="Free some space and pull again; what is here is kept."
        )
    return DiskError(f"{path} cannot be written: {exc.strerror or exc}.", remedy="Check the folder's permissions, or set MONKEYCODE_HOME.")
