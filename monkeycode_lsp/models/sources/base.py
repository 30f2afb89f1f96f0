"""The seam between a pull and the places that can deliver a file."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from monkeycode_lsp.models import part, receipt
from monkeycode_lsp.models.catalogue import Entry

Progress = Callable[[str, int, int | None], None]
"""Hears what is being done, bytes done, and bytes in all (None: not known).  It may raise to stop; what is here stays.

With nothing done and nothing known in all it hears a sentence for the user."""
DOWNLOADING = "Downloading"
"""The stage of every source that downloads, so that one bar shows the whole."""

_SPARE_BYTES = 64 << 20
"""Left free, so that a download never fills the user's disk to the brim."""


def free_bytes(folder: Path) -> int:
    """What is free where `folder` lies."""
    return shutil.disk_usage(folder).free


class Job(msgspec.Struct, frozen=True):
    """One pull: what is wanted, where to, and who hears of it."""

    entry: Entry
    folder: Path
    progress: Progress
    free_bytes: Callable[[Path], int] = free_bytes

    @property
    def target(self) -> Path:
        """Where the finished file goes."""
        return self.folder / self.entry.file

    @property
    def part_path(self) -> Path:
        """Where the unfinished file lies."""
        return self.folder / f"{self.entry.file}.part"

    def open_part(self) -> part.PartFile:
        """The unfinished file, continued where it was left."""
        return part.PartFile(
            self.part_path, report=lambda done, total: self.progress("Checking what is already here", done, self.entry.bytes or total)
        )

    def needs(self, n_bytes: int) -> None:
        """Refuse early what the disk cannot hold."""
        free = self.free_bytes(self.folder)
        if free < n_bytes + _SPARE_BYTES:
            raise part.DiskError(
                f"There is not enough room in {self.folder}: {_gigabytes(n_bytes + _SPARE_BYTES)} are needed, {_gigabytes(free)} are free.",
                remedy="Free some space, or set MONKEYCODE_HOME to a folder on a larger disk.",
            )

    def complete(self, file: part.PartFile, *, size: int | None, sha256: str) -> Path:
        """Check `file`, put it in its place and note that it is right."""
        found = file.complete(self.target, size=size, sha256=sha256)
        receipt.write(self.folder, self.entry.file, self.target, found)
        return self.target


class Source(Protocol):
    """A place that may have the file."""

    @property
    def name(self) -> str:
        """For people: `the hub (huggingface.co)`."""
        ...

    def deliver(self, job: Job) -> Path:
        """Bring the file, checked, to `job.target`, or name the checked file that can be used where it is.

        Raises a `DownloadError` that says in a sentence why not.
        """
        ...


def _gigabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB"
