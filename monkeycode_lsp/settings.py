"""Where settings come from, laid over one another: defaults < user file < workspace file < environment < editor."""

from __future__ import annotations

import logging
import os
import stat
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from monkeycode_lsp import config, folders

if sys.platform == "win32":
    from urllib.request import url2pathname
else:
    url2pathname = unquote  # the same, without an HTTP client's megabyte in every window

SECTION = "monkeycode"
"""The name of our settings among everybody's."""
USER_FILE = "monkeycode.toml"
WORKSPACE_FILE = ".monkeycode.toml"
_MOST_BYTES = 1024 * 1024


class Layers:
    """The trees of every source, and the settings that they make together."""

    # The mutable state is the last tree of each source; each changes in its own method only.

    def __init__(self, *, environ: Mapping[str, str], overrides: Mapping[str, Any] | None = None) -> None:
        self._user: dict[str, Any] = {}
        self._workspace: dict[str, Any] = {}
        self._workspace_file = Path(WORKSPACE_FILE)
        self._environment = config.from_environment(environ)
        self._client: Mapping[str, Any] = {}
        self._current: Mapping[str, Any] = {}
        self._overrides = overrides or {}
        self._file_problems: list[str] = []

    def read_files(self, workspace_uri: str = "") -> None:
        """Read the user's file and the workspace's.  Blocking; both are small, and read again when the editor says that settings changed."""
        self._file_problems = []
        self._user = self._read(user_file())
        root = _local_path(workspace_uri)
        if root is not None:
            self._workspace_file = root / WORKSPACE_FILE
            tree, dropped = config.without_workspace_secrets(self._read(self._workspace_file))
            self._workspace = tree
            self._file_problems += [_in(problem, f"file {self._workspace_file}") for problem in dropped]

    def set_client(self, tree: Any) -> None:
        """`initializationOptions`: all of it is meant for us, below a key with our name or without."""
        if isinstance(tree, Mapping):
            section = tree.get(SECTION)
            self._client = section if isinstance(section, Mapping) else tree

    def set_pushed(self, tree: Any) -> None:
        """`didChangeConfiguration`.  Some editors push everybody's settings, so what is not clearly ours is not taken."""
        if not isinstance(tree, Mapping):
            return
        if SECTION in tree:
            self.set_current(tree[SECTION])
        elif tree.keys() & config.fields(config.Config).keys():
            self.set_current(tree)

    def set_current(self, tree: Any) -> None:
        """The editor's settings as they are now, in place of those that it had before: what was removed there is no longer set."""
        if tree is None or isinstance(tree, Mapping):
            self._current = tree or {}

    def resolve(self) -> tuple[config.Config, list[str]]:
        """The settings, and what could not be used, in words."""
        settings = config.Config()
        problems = list(self._file_problems)
        sources: tuple[tuple[Mapping[str, Any], str], ...] = (
            (self._user, f"file {user_file()}"),
            (self._workspace, f"file {self._workspace_file}"),
            (self._environment, "environment variables"),
            (self._client, ""),
            (self._current, ""),
            (self._overrides, ""),
        )
        for tree, source in sources:
            settings, found = config.decode(tree, settings)
            problems += [_in(problem, source) for problem in found]
        return settings, problems

    def log_level(self, settings: config.Config) -> int:
        """As a number of the `logging` module."""
        return logging.getLevelNamesMapping()[settings.log_level.upper()]

    def _read(self, path: Path) -> dict[str, Any]:
        try:
            return tomllib.loads(_text(path))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as exc:
            problem = str(exc)
        except RecursionError:
            problem = "it is nested too deeply"
        self._file_problems.append(f"file {path} cannot be used and was left out: {problem}.")
        return {}


def _in(problem: str, source: str) -> str:
    return f"{problem} ({source})" if source else problem


def user_file() -> Path:
    """The file with the user's own settings."""
    return folders.config() / USER_FILE


def load(overrides: Mapping[str, Any] | None = None, workspace: Path | None = None) -> tuple[config.Config, list[str]]:
    """The settings as a command of the terminal sees them."""
    layers = Layers(environ=os.environ, overrides=overrides)
    layers.read_files(workspace.absolute().as_uri() if workspace else "")
    return layers.resolve()


def _text(path: Path) -> str:
    """A file's text.  Raises `OSError`, or `ValueError` for what is no file of settings: a workspace may hold anything, a pipe too."""
    kind = path.stat()
    if not stat.S_ISREG(kind.st_mode):
        raise ValueError("it is not a regular file")
    if kind.st_size > _MOST_BYTES:
        raise ValueError("it is too large")
    return path.read_text(encoding="utf-8")


def _local_path(uri: str) -> Path | None:
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    return Path(url2pathname(parts.path)) if parts.scheme == "file" else None
