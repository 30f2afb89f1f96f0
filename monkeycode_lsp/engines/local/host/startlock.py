"""One process at a time starts an engine process or clears up after one.

The system gives the lock back when its holder ends, however it ends; then the file stays behind until the next holder goes.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from monkeycode_lsp.engines.local.host import rendezvous

if sys.platform == "win32":
    import msvcrt

    def _take(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    _NO_LINK = 0
else:
    import fcntl

    _NO_LINK = os.O_NOFOLLOW
    """A link that leads nowhere would look like a folder that has been taken away."""

    def _take(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class StartLock:
    """A lock that is held until `release`."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: Path) -> StartLock | None:
        """Hold the lock; None: another process has it.  Blocking, but not for it.  Raises `OSError`."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o600)
        try:
            _take(descriptor)
            # Its last holder may have taken the file away in the meantime: then it locks nothing.
            if _is_same(path, descriptor):
                return cls(path, descriptor)
        except (BlockingIOError, PermissionError):
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        return None

    def release(self) -> None:
        """Let others have it.  The file goes first, so that whoever opens it from now on gets a new one."""
        if sys.platform == "win32":
            os.close(self._descriptor)
            with contextlib.suppress(OSError):  # another process has opened it
                self._path.unlink()
            return
        rendezvous.remove(self._path)
        os.close(self._descriptor)


def _is_same(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
