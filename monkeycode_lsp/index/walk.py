"""Which files of a workspace count: source of a known language that is the user's own.

Invariants: no link is followed, so nothing outside the workspace is ever found; what cannot be read is left out.
"""

from __future__ import annotations

import operator
import os
import stat
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import msgspec

from monkeycode_lsp.context import secrets
from monkeycode_lsp.index import languages
from monkeycode_lsp.index.ignoring import Rules
from monkeycode_lsp.index.wire import Limits

MOST_BYTES = 524_288
"""Larger files are data, or made by a program."""
_NOBODYS = frozenset({
    "CVS", "node_modules", "bower_components", "jspm_packages", "site-packages", "__pycache__", "__pypackages__",
    "DerivedData", "Pods", "Carthage", "bazel-bin", "bazel-out", "bazel-testlogs", "cmake-build-debug", "cmake-build-release",
})  # fmt: skip
"""Folders of version control, of packages that others wrote, and of what was built."""
_BUILT = frozenset({"build", "dist", "out", "target", "bin", "obj", "vendor", "coverage", "htmlcov", "_build", "deps", "venv", "env"})
"""The same, where a project's file lies beside them; elsewhere they may be anything, such as a package `build`."""
_PROJECT = frozenset({
    "package.json", "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Cargo.toml", "go.mod", "pom.xml", "build.gradle", "build.gradle.kts",
    "build.sbt", "CMakeLists.txt", "Makefile", "meson.build", "composer.json", "Gemfile", "mix.exs", "Package.swift", "build.zig", "tsconfig.json",
})  # fmt: skip
_PROJECT_ENDINGS = (".csproj", ".fsproj", ".vcxproj", ".sln", ".cabal", ".gemspec")
_SYSTEMS = frozenset({"proc/", "sys/", "dev/", "run/"})
"""At the top of a disk: what shows the system and is not stored."""
_MARKED = frozenset({"pyvenv.cfg", "CACHEDIR.TAG"})
"""Files by which an environment or a cache says what it is."""
_NAME = operator.attrgetter("name")
_GENERATED = (
    ".min.js",
    ".min.mjs",
    ".bundle.js",
    ".chunk.js",
    "_pb2.py",
    "_pb2.pyi",
    "_pb2_grpc.py",
    ".pb.go",
    ".pb.cc",
    ".pb.h",
    ".g.cs",
    ".designer.cs",
)


class Found(msgspec.Struct, frozen=True):
    """One file."""

    path: str
    """Relative to the workspace, `/` separated."""
    size: int
    mtime_ns: int
    level: int
    """Of `ignores.Level`: how far its text may go."""


class Folder(msgspec.Struct, frozen=True):
    """One folder that was looked into, before its files."""

    path: str
    """`/` at the end; empty: the workspace."""


class Cut(msgspec.Struct, frozen=True):
    """Not everything was found."""

    why: str


def walk(
    root: Path,
    rules: Rules,
    start: str = "",
    *,
    only_folders: bool = False,
    limits: Limits = Limits(),  # noqa: B008 - frozen
) -> Iterator[Found | Folder | Cut]:
    """Everything that counts in the folder `start` and below, a folder at a time, those near the top first."""
    waiting = deque([start])
    n_folders = n_entries = 0
    while waiting:
        if n_entries >= limits.entries:
            yield Cut(f"it has more than {limits.entries:,} files")
            return
        folder = waiting.popleft()
        try:
            with os.scandir(root / folder) as entries:
                inside = list(islice(entries, limits.entries_of_folder + 1))
        except OSError:  # it has gone, or is not for us
            continue
        n_folders, n_entries = n_folders + 1, n_entries + len(inside)
        if len(inside) > limits.entries_of_folder:
            yield Cut(f"a folder has more than {limits.entries_of_folder:,} files")
            del inside[limits.entries_of_folder :]
        inside.sort(key=_NAME)  # so that the same is left out each time
        names = partial(map, _NAME, inside)
        if folder and not _MARKED.isdisjoint(names()):
            continue
        yield Folder(folder)
        deeper = []
        for entry in inside:
            match _kind(entry):
                case "folder" if may_enter(f"{folder}{entry.name}/", names, rules):
                    deeper.append(f"{folder}{entry.name}/")
                case "file" if not only_folders and (found := _found(entry, folder, rules)) is not None:
                    yield found
        room = limits.folders - n_folders - len(waiting)
        if len(deeper) > room:
            yield Cut(f"it has more than {limits.folders:,} folders")
        waiting += deeper[:room]


def may_enter(path: str, beside: Callable[[], Iterable[str]], rules: Rules) -> bool:
    """Whether to look into a folder (`/` at the end), its parents not looked at.  `beside`: the names in its parent."""
    name = path.rstrip("/").rpartition("/")[2]
    if (
        name.startswith(".")
        or name in _NOBODYS
        or name.endswith(".egg-info")
        or name.lower() in secrets.SECRET_FOLDERS
        or not is_text(name)
    ):
        return False
    if path in _SYSTEMS and rules.is_of_disk:
        return False
    if name in _BUILT and any(other in _PROJECT or other.endswith(_PROJECT_ENDINGS) for other in beside()):
        return False
    return rules.judge(path).is_quoted


def counts(path: str, rules: Rules) -> bool:
    """Whether a file of this name can be source of interest, and none that holds secrets."""
    name = path.rpartition("/")[2]
    return bool(languages.of(name)) and is_text(name) and not name.lower().endswith(_GENERATED) and not rules.is_secret(path)


def is_text(name: str) -> bool:
    """A name that holds bytes of no text could not be shown to a model, nor sent by an editor."""
    return name.isprintable() and "\\" not in name


def _kind(entry: os.DirEntry[str]) -> str:
    try:
        if entry.is_symlink() or (sys.platform == "win32" and _is_junction(entry)):
            return "link"
        return "folder" if entry.is_dir(follow_symlinks=False) else "file" if entry.is_file(follow_symlinks=False) else "other"
    except OSError:
        return "other"


if sys.platform == "win32":

    def _is_junction(entry: os.DirEntry[str]) -> bool:
        """A folder's link, which is none in Python's eyes before 3.12."""
        return bool(entry.stat(follow_symlinks=False).st_file_attributes & stat.FILE_ATTRIBUTE_REPARSE_POINT)


def _found(entry: os.DirEntry[str], folder: str, rules: Rules) -> Found | None:
    path = f"{folder}{entry.name}"
    if not counts(path, rules):
        return None
    verdict = rules.judge(path)
    try:
        known = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    is_wanted = verdict.is_quoted and 0 < known.st_size <= MOST_BYTES
    return Found(path, known.st_size, known.st_mtime_ns, int(verdict.level)) if is_wanted else None
