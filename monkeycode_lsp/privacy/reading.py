"""What the disk says about one file: its real name, and the ignore files of the folders above it.  Blocking.

Counted are the folders from the top of the repository that holds the workspace, or from the workspace where there is no
repository; for a file outside of both, all of them.  A file that cannot be read is told from one that is not there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

import msgspec

from monkeycode_lsp.context import ignores
from monkeycode_lsp.context.ignores import IgnoreFile
from monkeycode_lsp.context.policy import Policy, Verdict

_ON_DISK = frozenset({"file", "vscode-notebook-cell"})
_MOST_FOLDERS = 128

Signature = tuple[int, ...]
"""Changes when a file does."""
Kept = Mapping[Path, tuple[Signature, IgnoreFile]]
"""Ignore files as they were read last."""


class Found(msgspec.Struct, frozen=True):
    """About one file."""

    verdict: Verdict
    real: str
    """The path that it has without links."""
    files: dict[Path, tuple[Signature, IgnoreFile]]
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
    files: dict[Path, tuple[Signature, IgnoreFile]] = {}
    real = Path(os.path.realpath(path))
    verdicts = [_judged(name, workspace, names, kept, files) for name in dict.fromkeys((path, real))]
    strictest = max(verdicts, key=lambda verdict: verdict.level)
    quoted = all(verdict.is_quoted for verdict in verdicts)
    return Found(msgspec.structs.replace(strictest, is_quoted=quoted), str(real), files)


def _judged(
    path: Path, workspace: Path | None, names: Sequence[str], kept: Kept, files: dict[Path, tuple[Signature, IgnoreFile]]
) -> Verdict:
    counted = _folders(path, workspace)
    found: list[IgnoreFile] = []
    for folder in counted:
        for source, name in _sources(folder, names):
            read = _read(source, _place(folder), name, kept)
            if read is not None:
                files[source] = read
                found.append(read[1])
    return Policy(found).judge(path.as_posix().lstrip("/"))


def _folders(path: Path, workspace: Path | None) -> list[Path]:
    """Those whose ignore files count, the outermost first."""
    above = list(path.parents)[:_MOST_FOLDERS]
    inside = workspace is not None and path.is_relative_to(workspace)
    within = [folder for folder in above if workspace is None or not inside or folder.is_relative_to(workspace)]
    top = next((folder for folder in above[len(within) - 1 if inside else 0 :] if (folder / ".git").exists()), None)
    if top is None:
        return within[::-1]
    return [folder for folder in reversed(above) if folder.is_relative_to(top)]


def _sources(folder: Path, names: Sequence[str]) -> Iterator[tuple[Path, str]]:
    if ".gitignore" in names:
        yield folder / ".git" / "info" / "exclude", ".gitignore"
    for name in names:
        yield folder / name, name


def _place(folder: Path) -> str:
    return folder.as_posix().strip("/")


def _read(source: Path, place: str, name: str, kept: Kept) -> tuple[Signature, IgnoreFile] | None:
    """One ignore file, read only if it is not the one that was read before; None: there is none."""
    try:
        state = source.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError:
        return (), ignores.read(place, name, None)
    signature = (state.st_mtime_ns, state.st_ctime_ns, state.st_size, state.st_ino, state.st_dev)
    before = kept.get(source)
    if before is not None and before[0] == signature:
        return before
    try:  # what is no file could be waited for without end
        data = source.read_bytes() if stat.S_ISREG(state.st_mode) and state.st_size <= ignores.MOST_BYTES else None
    except FileNotFoundError:
        return None
    except OSError:
        data = None
    return signature, ignores.read(place, name, data)
