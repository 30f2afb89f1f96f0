"""Whose text may go how far, and what is worth quoting, by the ignore files of a workspace (pure).

A file counts for what is below its own folder, and the last pattern that matches decides.  A file further down can
lift what one above it says of single files, but not what that says of the whole folder it lies in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import msgspec

from monkeycode_lsp.context.ignores import IgnoreFile, Level, Rule

T = TypeVar("T")
Found = tuple[Level, str]
"""A level, and for people why."""

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
        self._levels: dict[str, tuple[Level, str]] = {}
        self._ignored: dict[str, str] = {}

    def judge(self, path: str) -> Verdict:
        """Of a file, or of a folder where `path` ends in `/`; `/` separated, relative to where the files' folders are."""
        path = path.lstrip("/")
        if path.count("/") > _DEEPEST:
            return Verdict(Level.NEVER, is_quoted=False, why="its path is too long")
        level, why = self._level(path)
        ignored = self._why_ignored(path)
        return Verdict(level, is_quoted=level is not Level.NEVER and not ignored, why=why or ignored)

    def _level(self, path: str) -> Found:
        decided: Found = (Level.ANYWHERE, "")
        for folder in _above(path):
            found = [said for file in self._private.get(folder, ()) if (said := _said(file, path)) is not None]
            if found:
                decided = _strictest(_remembered(self._levels, folder, self._level_of_folder), *found)
        return decided

    def _level_of_folder(self, folder: str) -> Found:
        """By the files above it."""
        return self._level(folder + "/") if folder else (Level.ANYWHERE, "")

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
                    why = _names(rule, file) if rule.level is Level.NEVER else ""
        return why


def _said(file: IgnoreFile, path: str) -> Found | None:
    if file.fault is not None:
        return Level.NEVER, in_words(file)
    rule = file.last_match(path)
    return (rule.level, _names(rule, file)) if rule is not None else None


def _names(rule: Rule, file: IgnoreFile) -> str:
    return f"the pattern {rule.text} in line {rule.line} of {file.path}"


def _strictest(*found: Found) -> Found:
    return max(found, key=lambda said: said[0])


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
