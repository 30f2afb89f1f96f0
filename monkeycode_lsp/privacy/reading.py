"""What the disk says about one file: its real name, and the ignore files of the folders above it.  Blocking.

Counted are the folders from the top of the repository that holds the workspace, or from the outermost folder of the workspace
that holds the file where there is no repository; for a file outside of both, all of them.  What is no file of this machine
is judged by the names in its URI: as the file of the workspace that they name, or as if it lay in each of its folders.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

import msgspec

from monkeycode_lsp.context.ignores import IgnoreFile
from monkeycode_lsp.context.policy import Policy, Verdict
from monkeycode_lsp.privacy import ignore_files
from monkeycode_lsp.privacy.ignore_files import Kept, Read

_CELL = "vscode-notebook-cell"
_ON_DISK = frozenset({"file", _CELL})


class Found(msgspec.Struct, frozen=True):
    """About one file."""

    verdict: Verdict
    real: str
    """The path that it has without links."""
    files: dict[Path, Read]
    """The ignore files that count."""


def path_of(uri: str) -> Path | None:
    """The file that a document is; None: it is none of this machine's."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme not in _ON_DISK or not parts.path.startswith("/") or "\0" in unquote(parts.path):
        return None
    return _path(parts.netloc, parts.path)


def folder_of(uri: str) -> Path | None:
    """The folder that a workspace is, or would be on this machine; None: it is none."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    return _path(parts.netloc, parts.path) if parts.path.startswith("/") and "\0" not in unquote(parts.path) else None


def places(uri: str, folders: Sequence[Path]) -> list[Path]:
    """Where a document is, or would be in the `folders` of the workspace; several if that is not certain.  Raises `ValueError`.

    Some editors write `#` and `?` of a name as they are.
    """
    parts = urlsplit(uri)
    path = parts.path
    rest = uri.partition(":")[2].removeprefix(f"//{parts.netloc}")
    whole = rest.rpartition("#")[0] or rest if parts.scheme == _CELL else rest
    if "\0" in unquote(rest):
        raise ValueError("no file has such a name")
    written = dict.fromkeys((path, whole))
    if parts.scheme in _ON_DISK and path.startswith("/"):
        return [_path(parts.netloc, one) for one in written]
    found: list[Path] = []
    for one in (os.path.normpath("/" + unquote(one).lstrip("/")) for one in written):
        inside = Path(one)
        is_inside = any(inside.is_relative_to(folder) for folder in folders)
        found += [inside] if is_inside else [folder / one.lstrip("/") for folder in folders]
    return found


def outermost(path: Path, folders: Iterable[Path]) -> Path | None:
    """The folder of the workspace that holds the file and all others that do; None: it lies outside."""
    return min((folder for folder in folders if path.is_relative_to(folder)), key=lambda folder: len(folder.parts), default=None)


def _path(host: str, path: str) -> Path:
    return Path(url2pathname((f"//{host}" if host and os.name == "nt" else "") + path))


def look(path: Path, workspace: Path | None, names: Sequence[str], kept: Kept) -> Found:
    """The stricter of what is said of the file and of what it is a link to."""
    files: dict[Path, Read] = {}
    real = Path(os.path.realpath(path))
    verdicts = [_judged(name, workspace, names, kept, files) for name in dict.fromkeys((path, real))]
    strictest = max(verdicts, key=lambda verdict: verdict.level)
    quoted = all(verdict.is_quoted for verdict in verdicts)
    return Found(msgspec.structs.replace(strictest, is_quoted=quoted), str(real), files)


def _judged(path: Path, workspace: Path | None, names: Sequence[str], kept: Kept, files: dict[Path, Read]) -> Verdict:
    found: list[IgnoreFile] = []
    for folder in _folders(path, workspace):
        for source, read in ignore_files.of_folder(folder, _place(folder), names, shown=_shown(folder, workspace), kept=kept):
            files[source] = read
            found.append(read.file)
    return Policy(found).judge(path.as_posix().lstrip("/"))


def _folders(path: Path, workspace: Path | None) -> list[Path]:
    """Those whose ignore files count, the outermost first."""
    above = list(path.parents)[: ignore_files.MOST_LEVELS]
    inside = workspace is not None and path.is_relative_to(workspace)
    within = [folder for folder in above if workspace is None or not inside or folder.is_relative_to(workspace)]
    top = ignore_files.top(above[len(within) - 1 if inside else 0 :])
    if top is None:
        return within[::-1]
    return [folder for folder in reversed(above) if folder.is_relative_to(top)]


def _place(folder: Path) -> str:
    return folder.as_posix().strip("/")


def _shown(folder: Path, workspace: Path | None) -> str:
    """What people call it: relative to the workspace if it lies there, else its whole path."""
    inside = folder.relative_to(workspace).as_posix() if workspace is not None and folder.is_relative_to(workspace) else folder.as_posix()
    return "" if inside == "." else inside.rstrip("/") + "/"
