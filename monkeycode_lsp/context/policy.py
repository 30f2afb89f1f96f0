"""Whose text may go how far, and what is worth quoting, by the ignore files of a workspace (pure).

A file counts for what is below its own folder, after those above it.  It can take back what they say of single files, but not
what they say of the whole folder it lies in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import msgspec

from monkeycode_lsp.context.ignores import IgnoreFile, Level, Standing

T = TypeVar("T")
_MOST_FOLDERS = 4_096
"""That are remembered."""
_DEEPEST = 256


class Verdict(msgspec.Struct, frozen=True):
    """What the ignore files say of one path."""

    level: Level = Level.ANYWHERE
    is_quoted: bool = True
    """Whether it may stand in a prompt for another file: its level is not NEVER and no tool ignores it."""
    why: str = ""
    """For people: the pattern and its file; empty: no pattern matches."""


ANYWHERE = Verdict()


class Policy:
    """Of some ignore files, which all name folders relative to the same place."""

    # The files never change; what was found out of folders is remembered in `_levels` and `_ignored`, which change in `_remembered` only.

    def __init__(self, files: Iterable[IgnoreFile] = ()) -> None:
        self.files = tuple(files)
        self._private: dict[str, list[IgnoreFile]] = {}
        self._plain: dict[str, list[IgnoreFile]] = {}
        for file in self.files:
            (self._private if file.is_private else self._plain).setdefault(file.folder, []).append(file)
        self._levels: dict[str, Standing] = {}
        self._ignored: dict[str, str] = {}

    def judge(self, path: str) -> Verdict:
        """Of a file, or of a folder where `path` ends in `/`; `/` separated, relative to where the files' folders are."""
        path = path.lstrip("/")
        if path.count("/") > _DEEPEST:
            return Verdict(Level.NEVER, is_quoted=False, why="its path is too long")
        standing = self._standing(path)
        level = max(standing, default=Level.ANYWHERE)
        why = standing.get(level, "")
        ignored = self._why_ignored(path)
        return Verdict(level, is_quoted=level is not Level.NEVER and not ignored, why=why or ignored)

    def _standing(self, path: str) -> Standing:
        standing: Standing = {}
        for folder in _above(path):
            found = [said for file in self._private.get(folder, ()) if (said := _said(file, standing, path)) is not None]
            if found:
                standing = {
                    level: why for said in (*found, _remembered(self._levels, folder, self._of_folder)) for level, why in said.items()
                }
        return standing

    def _of_folder(self, folder: str) -> Standing:
        """By the files above it."""
        return self._standing(folder + "/") if folder else {}

    def _why_ignored(self, path: str) -> str:
        """As Git does it: what is in an ignored folder is ignored, whatever else is said of it."""
        for folder in _above(path):
            if folder and (why := _remembered(self._ignored, folder, lambda folder: self._why_matched(folder + "/"))):
                return why
        return self._why_matched(path)

    def _why_matched(self, path: str) -> str:
        why = ""
        for folder in _above(path):
            for file in self._plain.get(folder, ()):
                if rule := file.last_match(path):
                    why = file.name_of(rule) if rule.level is Level.NEVER else ""
        return why


def _said(file: IgnoreFile, before: Standing, path: str) -> Standing | None:
    return {**before, Level.NEVER: in_words(file)} if file.fault is not None else file.after(before, path)


def in_words(file: IgnoreFile) -> str:
    """Why nothing below a file is served."""
    if file.fault is None:
        return ""
    where = f"line {file.fault.line} of {file.path}" if file.fault.line else file.path
    return f"{where} is not understood: {file.fault.why}"


def _above(path: str) -> Iterator[str]:
    """The folders that hold `path`, the outermost first."""
    yield ""
    parts = path.rstrip("/").split("/")[:-1]
    for n_parts in range(1, len(parts) + 1):
        yield "/".join(parts[:n_parts])


def _remembered(found: dict[str, T], folder: str, find: Callable[[str], T]) -> T:
    if folder not in found:
        if len(found) >= _MOST_FOLDERS:
            found.clear()
        found[folder] = find(folder)
    return found[folder]
