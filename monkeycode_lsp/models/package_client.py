"""The machine's own package client: pip of this Python, or uv where pip is missing."""

from __future__ import annotations

import importlib.util
import shutil
import sys


def downloader() -> tuple[str, ...] | None:
    """The command that understands `download …` as pip does; None where neither pip nor uv is here."""
    if importlib.util.find_spec("pip") is not None:
        return (sys.executable, "-m", "pip")
    uv = shutil.which("uv")
    return (uv, "tool", "run", "pip") if uv else None


def installer(python: str = sys.executable) -> tuple[str, ...] | None:
    """The command that installs what is named after it into the environment of `python`."""
    if importlib.util.find_spec("pip") is not None:
        return (python, "-m", "pip", "install")
    uv = shutil.which("uv")
    return (uv, "pip", "install", "--python", python) if uv else None
