"""A file on which the process dies is not tried for ever: a note says which one it is reading.

Invariant: one death may have another reason (the file is tried again), two deaths on one file have none.
"""

from __future__ import annotations

import os
from pathlib import Path

_MOST_DEATHS = 2


class Note:
    """Which file is being read.  Raises `OSError` when it is made, never later."""

    # The mutable state is the file's text, "" or "deaths path" (`_write`), and what it was at the start (`spares`).

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0), 0o600)
        deaths, _, suspect = os.read(self._descriptor, 65_536).decode("utf-8", "surrogateescape").partition(" ")
        self._suspect = suspect
        self._deaths = int(deaths) + 1 if deaths.isdecimal() and suspect else 0
        self._n_bytes = len(deaths) + len(suspect) + 1

    def spares(self, path: str) -> bool:
        """Whether reading it has ended this process twice; said once, for then it is read only if it has changed."""
        if path != self._suspect or self._deaths < _MOST_DEATHS:
            return False
        self._suspect, self._deaths = "", 0
        return True

    def reads(self, path: str) -> None:
        """It is read now."""
        self._write(f"{self._deaths if path == self._suspect else 0} {path}".encode("utf-8", "surrogateescape"))

    def clear(self) -> None:
        """Nothing is."""
        self._write(b"")

    def close(self) -> None:
        os.close(self._descriptor)

    def _write(self, data: bytes) -> None:
        padded = data.ljust(self._n_bytes)  # in one call, so that what was longer is never seen half overwritten
        self._n_bytes = len(data)
        try:
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            os.write(self._descriptor, padded)
            if len(padded) > len(data):
                os.ftruncate(self._descriptor, len(data))
        except OSError:
            return  # a full disk: then a death is not noted
