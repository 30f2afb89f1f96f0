"""One process at a time fills a database; the system gives the lock back when its holder ends, however that ends."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path


class Lock:
    """A file that is opened, and locked once `is_free` or `wait` says so.  Raises `OSError`."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)

    def is_free(self) -> bool:
        """Take it, if nobody has it."""
        try:
            _take(self._descriptor, wait=False)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def wait(self) -> None:
        """Take it, as soon as nobody has it."""
        while True:
            with contextlib.suppress(BlockingIOError, PermissionError):
                _take(self._descriptor, wait=True)
                return

    def release(self) -> None:
        """Let others have it."""
        os.close(self._descriptor)


if sys.platform == "win32":
    import errno
    import msvcrt

    def _take(descriptor: int, *, wait: bool) -> None:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        except OSError as exc:
            if exc.errno == errno.EDEADLK:  # it has waited for ten seconds
                raise BlockingIOError from exc
            raise

else:
    import fcntl

    def _take(descriptor: int, *, wait: bool) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
