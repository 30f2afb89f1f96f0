"""The folder that suggestions lie in, and the secret that its keys are hashed with.

Invariant: nobody but this user can put anything there, and the secret is the same for all windows of the user.
"""

from __future__ import annotations

import errno
import os
import secrets
import sys
from pathlib import Path

from monkeycode_lsp.recall.disk_trouble import Trouble, TroubleError

SECRET = "secret"  # noqa: S105 - a file name
_N_BYTES = 32


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
    """32 bytes that every window of the user finds; made by the first one.  Raises `OSError`."""
    path = folder / SECRET
    try:
        found = path.read_bytes()
    except FileNotFoundError:
        _make(path)
        found = path.read_bytes()
    if len(found) != _N_BYTES:
        # Cut off by a crash or a full disk.  What was hashed with it is never found again, and ages away.
        _draft(path).replace(path)
        found = path.read_bytes()
    return found


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
    """Create it for this user only unless it is there, so that nothing else chooses its mode.  Raises `OSError`."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)
