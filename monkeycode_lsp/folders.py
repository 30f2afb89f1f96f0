"""Where things of ours live on this machine.  Every folder can be moved by one variable, `MONKEYCODE_HOME`."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from pathlib import Path

import platformdirs

NAME = "monkeycode"


def _folder(kind: str, default: str) -> Path:
    home = os.environ.get("MONKEYCODE_HOME", "").strip()
    if not home:
        return Path(default)
    return Path(os.path.expanduser(home)) / kind  # noqa: PTH111 - the other raises for the home of a user who does not exist


def config() -> Path:
    """Settings that the user writes: `monkeycode.toml`."""
    return _folder("config", platformdirs.user_config_dir(NAME, appauthor=False))


def cache() -> Path:
    """What may be deleted at any time: recalled suggestions, self-test verdicts."""
    return _folder("cache", platformdirs.user_cache_dir(NAME, appauthor=False))


def models() -> Path:
    """Model files that we fetched."""
    return _folder("models", str(Path(platformdirs.user_data_dir(NAME, appauthor=False)) / "models"))


def state() -> Path:
    """Outcomes of the last asks, for `monkeycode why`."""
    return _folder("state", platformdirs.user_state_dir(NAME, appauthor=False))


def runtime() -> Path:
    """Private sockets; created with mode 0700, emptied at log-out on most systems."""
    if sys.platform == "win32":
        return _folder("run", platformdirs.user_runtime_dir(NAME, appauthor=False))
    # Where nothing useful is set platformdirs would warn and take a folder in /tmp, which may be another user's.
    given = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    with contextlib.suppress(OSError):
        if given.is_absolute() and is_private(given):
            return _folder("run", str(given / NAME))
    return _folder("run", str(Path(platformdirs.user_cache_dir(NAME, appauthor=False)) / "run"))


def private(folder: Path) -> Path:
    """Create `folder` for this user only and return it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def is_private(path: Path) -> bool:
    """Whether it is a folder that only this user can use.  Raises `OSError`."""
    found = path.lstat()
    if sys.platform == "win32":
        return stat.S_ISDIR(found.st_mode)  # the user's own folders are private there
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
