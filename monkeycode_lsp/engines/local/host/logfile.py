"""The log of an engine process: one file for each place, private, bounded, with the one before it beside it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from monkeycode_lsp import folders

_MOST_FILES = 12
_TAIL_BYTES = 256 * 1024
_PATTERN = "engine-*.log*"
MOST_BYTES = 4 * 1024 * 1024
"""A process that complains without end starts its log anew at this size."""


def path(key: str) -> Path:
    """Of the process with this key."""
    return folders.state() / f"engine-{key}.log"


def open_new(log: Path) -> int:
    """A descriptor of an empty log; the former one is kept under another name.  Raises `OSError`."""
    folders.private(log.parent)
    with contextlib.suppress(FileNotFoundError):
        log.replace(log.with_suffix(".log.old"))
    for old in newest(log.parent)[_MOST_FILES - 1 :]:
        old.unlink(missing_ok=True)
    return os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)


def newest(folder: Path) -> list[Path]:
    """All logs, the newest first."""
    found: list[tuple[float, Path]] = []
    for log in folder.glob(_PATTERN):
        with contextlib.suppress(OSError):
            found.append((log.stat().st_mtime, log))
    return [log for _, log in sorted(found, reverse=True)]


def bound(descriptor: int) -> None:
    """Empty a log that has become too long."""
    with contextlib.suppress(OSError):
        if os.fstat(descriptor).st_size > MOST_BYTES:
            os.ftruncate(descriptor, 0)


def tail(log: Path, n_lines: int) -> list[str]:
    """The last lines; none for a log that cannot be read."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return []
    return text.splitlines()[-n_lines:] if n_lines > 0 else []
