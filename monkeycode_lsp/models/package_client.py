"""The machine's own package client: pip of this Python, or uv where pip is missing."""

from __future__ import annotations

import importlib.util
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable

DISTRIBUTION = "monkeycode-lsp"
_PIP = (sys.executable, "-P", "-m", "pip")
"""`-P`: what lies in the user's working folder is never imported."""


def has_pip() -> bool:
    """Whether this Python has pip; uv's environments have none."""
    return importlib.util.find_spec("pip") is not None


def downloader(*, pip: Callable[[], bool] = has_pip, which: Callable[[str], str | None] = shutil.which) -> tuple[str, ...] | None:
    """The command that understands `download …` as pip does; None where neither pip nor uv is here."""
    if pip():
        return (*_PIP,)
    uv = which("uv")
    return (uv, "tool", "run", "pip") if uv else None


def installer(*, pip: Callable[[], bool] = has_pip, which: Callable[[str], str | None] = shutil.which) -> tuple[str, ...] | None:
    """The command that installs what is named after it into this Python's environment."""
    if pip():
        return (*_PIP, "install")
    uv = which("uv")
    return (uv, "pip", "install", "--python", sys.executable) if uv else None


def install_line(
    extra: str,
    *,
    pip: Callable[[], bool] = has_pip,
    which: Callable[[str], str | None] = shutil.which,
    windows: bool = sys.platform == "win32",
) -> str:
    """What the user types to add `extra` to the environment that this program runs in, whichever is active in his shell."""
    wanted = f"{DISTRIBUTION}[{extra}]"
    uv = None if pip() else which("uv")
    words = [uv, "pip", "install", "--python", sys.executable] if uv else [sys.executable, "-m", "pip", "install"]
    if windows:
        return f'{subprocess.list2cmdline(words)} "{wanted}"'
    return f"{shlex.join(words)} '{wanted}'"
