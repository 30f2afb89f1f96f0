"""The folder that suggestions lie in, and the secret that its keys are hashed with.

Invariants: nobody but this user can put anything there, and the secret is the same for all windows of the user.
Nothing is opened but plain files of this user, so nothing there can make us wait.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
from pathlib import Path

from monkeycode_lsp.recall.disk_trouble import Trouble, TroubleError

SECRET = "secret"  # noqa: S105 - a file name
_N_BYTES = 32
_CAREFULLY = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
"""Never wait for the other end of a pipe, follow no link; Windows has the last of these only."""


def prepare(folder: Path) -> None:
    """Create it for this user only, or see that it is this user's.  Raises `OSError` and `TroubleError`."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except ValueError as exc:  # a name that no folder can have
        raise OSError(errno.EINVAL, str(exc)) from exc
    check(folder)


def check(folder: Path) -> None:
    """See that it is there, and this user's.  Raises `OSError` and `TroubleError`."""
    # A link to a folder of the user's own is fine, so what counts is where it leads.
    try:
        found = folder.stat()
    except ValueError as exc:  # as above
        raise OSError(errno.EINVAL, str(exc)) from exc
    if sys.platform == "win32":
        return  # the user's own folders are private there
    if found.st_uid != os.geteuid():
        raise TroubleError(Trouble.OTHERS_FOLDER)
    if found.st_mode & 0o022:
        raise TroubleError(Trouble.OPEN_FOLDER)


def secret(folder: Path) -> bytes:
    """32 bytes that every window of the user finds; made by the first one.  Raises `OSError` and `TroubleError`."""
    path = folder / SECRET
    try:
        found = _read(path)
    except FileNotFoundError:
        _make(path)
        found = _read(path)
    if len(found) != _N_BYTES:
        # Cut off by a crash or a full disk.  What was hashed with it is never found again, and ages away.
        _draft(path).replace(path)
        found = _read(path)
    return found


def _read(path: Path) -> bytes:
    with os.fdopen(opened(path, os.O_RDONLY), "rb") as file:
        return file.read(_N_BYTES + 1)


def _make(path: Path) -> None:
    draft = _draft(path)
    try:
        # Unlike a rename, a link fails when another window was faster, and the file is whole from its first moment.
        path.hardlink_to(draft)
    except FileExistsError:
        pass
    except OSError:  # a file system without links
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _draft(path: Path) -> Path:
    draft = path.with_suffix(f".{secrets.token_hex(8)}")
    try:
        with open(draft, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(secrets.token_bytes(_N_BYTES))
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    return draft


def touch(path: Path) -> os.stat_result:
    """Create it for this user only unless it is there, so that nothing else chooses its mode.  Raises `OSError` and `TroubleError`."""
    descriptor = opened(path, os.O_RDWR | os.O_CREAT)
    try:
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)


def opened(path: Path, flags: int) -> int:
    """A descriptor of a plain file of this user.  Raises `OSError` and `TroubleError`."""
    check_file(path)  # before: opening alone can do something to a device
    descriptor = os.open(path, flags | _CAREFULLY, 0o600)
    try:
        _check_found(path.name, os.fstat(descriptor))
    except TroubleError:
        os.close(descriptor)
        raise
    return descriptor


def check_file(path: Path) -> None:
    """See that it is a plain file of this user, if it is there.  Raises `OSError` and `TroubleError`."""
    with contextlib.suppress(FileNotFoundError):
        _check_found(path.name, path.lstat())


def _check_found(name: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise TroubleError(Trouble.FOREIGN_FILE, f"{name} in it is not a plain file")
    if sys.platform != "win32" and found.st_uid != os.geteuid():
        raise TroubleError(Trouble.FOREIGN_FILE, f"{name} in it belongs to another user")
