"""One ignore file: its patterns, in the manner of .gitignore, and what each of them says (pure).

Two kinds, told apart by the file's name.  What a build tool or Git ignores is only not worth quoting.  Any other file,
`.monkeycodeignore` first of all, says how far a text may go: its patterns mean never, those below a line `[local]` only
this machine; where both match, never.  Those below `[anywhere]` take both back, `!pattern` what its own section says.
Whatever cannot be understood there is an error, never a pattern that matches nothing.
"""

from __future__ import annotations

import enum
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import pathspec

MOST_BYTES = 1_048_576
"""A longer file is no list of patterns."""
UNINTERESTING = frozenset(
    {".gitignore", ".ignore", ".rgignore", ".fdignore", ".dockerignore", ".npmignore", ".eslintignore", ".prettierignore"}
)
"""Files whose patterns name what is generated or fetched, and nothing that is private."""

_MOST_STARS = 4
"""In one part of a path: each one multiplies the time that a match can take."""
_LONG_PART = 64
_MANY_STARS = 3
_BRACKET = re.compile(r"\\.|\[[!^]?\]?(?:\\.|[^\]\\])*\]|\[", re.DOTALL)
_ODD_SET = re.compile(r"\[|--|&&|~~|\|\|")


class Level(enum.IntEnum):
    """How far a text may go; the larger is the stricter."""

    ANYWHERE = 0
    LOCAL = 1
    """To engines on this machine only."""
    NEVER = 2


Standing = Mapping[Level, str]
"""What is said of a path and was not taken back, and for people why; the strictest counts."""

_SECTIONS = {"never": Level.NEVER, "local": Level.LOCAL, "anywhere": Level.ANYWHERE}


class Fault(msgspec.Struct, frozen=True):
    """A line that cannot be understood."""

    line: int
    why: str


class Rule(msgspec.Struct, frozen=True):
    """One pattern."""

    line: int
    text: str
    level: Level
    """Of what it matches.  In a file of what is uninteresting: NEVER, do not quote it; ANYWHERE, do."""
    regex: re.Pattern[str]
    n_stars: int
    takes_back: tuple[Level, ...] = ()
    """What was said before of what it matches."""

    def matches(self, path: str) -> bool:
        """Whether it matches the file at `path`, or a folder (which ends in `/`) or what is below one."""
        if self.n_stars >= _MANY_STARS and any(len(part) > _LONG_PART for part in path.split("/")):
            return True  # to find out could take for ever; nothing is lost by a match
        return self.regex.search(path) is not None  # what matches at any depth has no beginning

    def names(self, path: str) -> bool:
        """Whether it matches that file or folder itself, and not only a folder that it lies in."""
        if self.n_stars >= _MANY_STARS and any(len(part) > _LONG_PART for part in path.split("/")):
            return True
        return any(_is_whole(match, path) for match in self.regex.finditer(path))


class IgnoreFile(msgspec.Struct, frozen=True):
    """What was read of one."""

    folder: str
    """Where it lies: `/` separated, without a slash at either end; empty: the folder that paths are relative to."""
    name: str
    rules: tuple[Rule, ...] = ()
    """In the order of the file."""
    fault: Fault | None = None
    """Why it cannot be understood; then everything below its folder is NEVER."""
    shown: str = ""
    """What people call it, if that is not its path from where paths are relative to."""

    @property
    def is_private(self) -> bool:
        """Whether it says how far a text may go, and not only what is worth quoting."""
        return is_private(self.name)

    @property
    def path(self) -> str:
        """For people."""
        return self.shown or (f"{self.folder}/{self.name}" if self.folder else self.name)

    def after(self, before: Standing, path: str) -> Standing | None:
        """What stands of a path below its folder, if `before` is what was said by others; None: it says nothing.  Of a private one."""
        below = folded(self._below(path))
        matching = [rule for rule in self.rules if rule.matches(below)]
        standing = dict(before)
        for rule in matching:
            for level in rule.takes_back:
                standing.pop(level, None)
            standing[rule.level] = self.name_of(rule)
        return standing if matching else None

    def last_match(self, path: str) -> Rule | None:
        """The rule that decides for a path below its folder.  Of one that is not private."""
        below = self._below(path)
        # Git asks of each folder on the way by itself, so does whoever asks here.
        return next((rule for rule in reversed(self.rules) if rule.names(below)), None)

    def name_of(self, rule: Rule) -> str:
        """For people."""
        return f"the pattern {rule.text} in line {rule.line} of {self.path}"

    def _below(self, path: str) -> str:
        return path[len(self.folder) + 1 :] if self.folder else path


def _is_whole(match: re.Match[str], path: str) -> bool:
    """The library's patterns end at the end of the path, or behind a folder (its group `ps_d`)."""
    behind = match.groupdict().get("ps_d")
    return behind is None or match.end("ps_d") == len(path)


def is_private(name: str) -> bool:
    """Whether a file of this name says how far a text may go."""
    return name.lower() not in UNINTERESTING


def folded(path: str) -> str:
    """One spelling for paths that a file system may take for the same."""
    return unicodedata.normalize("NFC", path.lower())


def read(folder: str, name: str, data: bytes | None) -> IgnoreFile:
    """The file of these bytes; None: it is there and could not be read."""
    if data is None:
        return _broken(folder, name, "it cannot be read")
    if len(data) > MOST_BYTES:
        return _broken(folder, name, "it is too long for a list of patterns")
    try:
        text = data.decode("utf-8-sig", "strict" if is_private(name) else "surrogateescape")
    except UnicodeDecodeError as exc:
        return _broken(folder, name, "it is not UTF-8 text", line=data[: exc.start].count(b"\n") + 1)
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if not is_private(name):
        return IgnoreFile(folder, name, tuple(_plain(lines)))
    try:
        return IgnoreFile(folder, name, tuple(_levels(lines)))
    except _FaultError as exc:
        return IgnoreFile(folder, name, fault=exc.fault)


class _FaultError(Exception):
    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.why)
        self.fault = fault


def _broken(folder: str, name: str, why: str, line: int = 0) -> IgnoreFile:
    """Git takes no notice of a file that it cannot read; what was meant to be private stays so."""
    return IgnoreFile(folder, name, fault=Fault(line, why) if is_private(name) else None)


def _plain(lines: Sequence[str]) -> Iterator[Rule]:
    for number, line in enumerate(lines, 1):
        found = _compiled(line)
        if not isinstance(found, str):
            yield Rule(number, line.strip(), Level.NEVER if found.include else Level.ANYWHERE, found.regex, _n_stars(line))


def _levels(lines: Sequence[str]) -> Iterator[Rule]:
    level = Level.NEVER
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        fault = partial(Fault, number)
        if header := re.fullmatch(r"\[([^\[\]]*)\]\s*(?:#.*)?", text):
            name = header[1].strip().lower()
            if name not in _SECTIONS:
                raise _FaultError(fault(f"there is no section {text}: sections are [never], [local] and [anywhere]"))
            level = _SECTIONS[name]
            continue
        if why := _mistaken(text):
            raise _FaultError(fault(why))
        found = _compiled(folded(line))
        if isinstance(found, str):
            raise _FaultError(fault(found))
        if not found.include and level is Level.ANYWHERE:
            raise _FaultError(fault("what is not anywhere belongs into the section [never] or [local]"))
        if found.include and level is not Level.ANYWHERE:
            yield Rule(number, text, level, found.regex, _n_stars(line))
        else:
            taken_back = (level,) if not found.include else (Level.LOCAL, Level.NEVER)
            yield Rule(number, text, Level.ANYWHERE, found.regex, _n_stars(line), taken_back)


def _mistaken(text: str) -> str:
    """What is wrong with a pattern that Git would take, and that would never match; empty: nothing."""
    if any(ord(char) < ord(" ") and char != "\t" for char in text):
        return "it holds a control character"
    if re.search(r"\\[\w.]", text):
        return "folders are separated by / and not by \\"
    if text.lstrip("!").startswith(("./", "../", "~/")) or "/../" in text or re.match(r"!?[A-Za-z]:/", text):
        return "patterns are relative to the file's own folder: write /name for what lies beside it"
    return ""


def _compiled(line: str) -> Any | str:
    """The library's pattern, or why there is none."""
    if not line.strip() or line.startswith("#"):
        return "it is empty"
    for bracket in _BRACKET.findall(line):
        if bracket.startswith("[") and (not bracket.endswith("]") or len(bracket) < len("[a]")):
            return "a [ has no ]"
        if bracket.startswith("[") and _ODD_SET.search(bracket[1:-1]):
            return f"the set {bracket} is not understood"
    if _n_stars(line) > _MOST_STARS:
        return f"there are more than {_MOST_STARS} * in one part of a path"
    try:
        # The library takes `a/**` for the folder too; for git it is what lies in it, and single files can be taken back.
        plain = re.sub(r"/\*\*(\s*)\Z", r"/**/*\1", re.sub(r"\*{3,}", "**", line))
        (pattern,) = pathspec.GitIgnoreSpec.from_lines([plain]).patterns
    except (ValueError, re.error):
        return "it is no pattern"
    return pattern if pattern.include is not None else "it matches nothing"


def _n_stars(line: str) -> int:
    return max(len(re.findall(r"\*+", part)) for part in line.split("/"))
