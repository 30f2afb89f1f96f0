"""A recording on its way to disk, in the format that `load` reads.

Invariant: whatever lies at its path is a whole recording that only the user can read, and no older one is ever replaced.
"""

from __future__ import annotations

import contextlib
import gzip
import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from monkeycode_lsp.bench.replay.trace import Patch
from monkeycode_lsp.errors import MonkeyCodeError

MOST_EDITS = 200_000
MOST_CHARACTERS = 8 * 1024 * 1024
"""Of a document when its recording begins, and put in while it is recorded.  What is longer is recorded up to there."""


class Transaction(msgspec.Struct, frozen=True):
    """What the editor sent as one change."""

    time: str
    """ISO 8601 with milliseconds."""
    patches: tuple[Patch, ...]


class Recording(msgspec.Struct, frozen=True, rename="camel"):
    """One document's history."""

    start_content: str
    end_content: str
    language: str
    txns: tuple[Transaction, ...]


class RecordingFile:
    """Where one recording goes: the path asked for, or a numbered one beside it where that is taken.

    The mutable state is the path, which the first `save` settles, and again the first one after a `remove`.
    """

    def __init__(self, wanted: Path) -> None:
        """Raises `MonkeyCodeError` if nothing can be written there."""
        self._wanted = wanted.absolute()
        self.path: Path | None = None
        try:
            if self._wanted.is_dir():
                raise IsADirectoryError(None, "it is a folder")
            with tempfile.TemporaryFile(dir=self._wanted.parent):
                pass
        except OSError as exc:
            raise MonkeyCodeError(f"Nothing can be written to {wanted}: {exc.strerror or exc}.") from exc

    def save(self, recording: Recording) -> None:
        """Replace what was saved before.  Blocking.  Raises `OSError`."""
        data = msgspec.json.encode(recording)
        if self._wanted.suffix == ".gz":
            data = gzip.compress(data)
        if self.path is None:
            self.path = self._free()
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")  # readable by the user only
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(self.path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise

    def remove(self) -> None:
        """Take back what was saved.  Raises `OSError`."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
            self.path = None

    def expected(self) -> Path:
        """Where it will go, unless somebody takes that name before."""
        return self.path or next(path for path in self._names() if not path.exists())

    def _free(self) -> Path:
        for path in self._names():
            with contextlib.suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                return path
        raise AssertionError("unreachable: the names are endless")

    def _names(self) -> Iterator[Path]:
        yield self._wanted
        stem, dot, suffixes = self._wanted.name.partition(".")
        yield from (self._wanted.with_name(f"{stem}-{number}{dot}{suffixes}") for number in itertools.count(2))
