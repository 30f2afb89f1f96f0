"""What the disk says about one file: its real name, and the ignore files of the folders above it.  Blocking.

Counted are the folders from the top of the repository that holds the workspace, or from the workspace where there is no
repository; for a file outside of both, all of them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

import msgspec

from monkeycode_lsp.context.ignores import IgnoreFile
from monkeycode_lsp.context.policy import Policy, Verdict
from monkeycode_lsp.privacy import ignore_files
from monkeycode_lsp.privacy.ignore_files import Kept, Read

_ON_DISK = frozenset({"file", "vscode-notebook-cell"})


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
    return Path(url2pathname((f"//{parts.netloc}" if parts.netloc and os.name == "nt" else "") + parts.path))


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
