"""One file of the workspace → its text, if a person wrote it.

Invariants: whatever lies there, reading it ends: no pipe is waited for, no link followed.  Text that changed while it was read is not taken.
"""

from __future__ import annotations

import enum
import errno
import hashlib
import os
import re
import stat
from pathlib import Path

import msgspec

from monkeycode_lsp.index.walk import MOST_BYTES

_CAREFULLY = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_LONGEST_LINE = 5_000
_LONG_ON_AVERAGE = 200
_FEW_BYTES = 2_000
"""Of a short file one long line says nothing."""
_FEW_ODD = 20
"""Bytes that are no UTF-8: a name in an older encoding."""
_HEAD = 2_048
_GENERATED = re.compile(
    r"@generated\b|\bgenerated\b.*\bdo not (?:edit|modify)\b|\bdo not (?:edit|modify)\b.*\bgenerated\b"
    r"|\bautomatically generated\b|\bauto-?generated (?:by|file|code)\b",
    re.IGNORECASE,
)
_GENERATED_GO = re.compile(r"^// Code generated .* DO NOT EDIT\.$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*(?:#|//|/?\*|--|;|<!--|\"\"\"|''')")
_HASH_BYTES = 16


class Why(enum.Enum):
    """Why there is no text."""

    UNREADABLE = "gone or unreadable"
    CHANGING = "changed while it was read"
    NOT_WRITTEN = "binary, generated or too large"


class Text(msgspec.Struct, frozen=True):
    """What a file holds."""

    text: str
    """LF only."""
    size: int
    mtime_ns: int
    digest: bytes


def read(root: Path, path: str) -> Text | Why:
    """The text of the file at `path`, relative to `root`.  Never fails."""
    try:
        data, before, after = _read(root / path)
    except (OSError, ValueError):  # gone, not for us, no file, or no such name can be
        return Why.UNREADABLE
    if before.st_size > MOST_BYTES:
        return Why.NOT_WRITTEN
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns) or len(data) != after.st_size:
        return Why.CHANGING
    text = written(data)
    if text is None:
        return Why.NOT_WRITTEN
    return Text(text, after.st_size, after.st_mtime_ns, hashlib.blake2b(data, digest_size=_HASH_BYTES).digest())


def _read(path: Path) -> tuple[bytes, os.stat_result, os.stat_result]:
    """What it holds, and what the system says of it before and after."""
    with open(path, "rb", opener=lambda name, _: os.open(name, _CAREFULLY)) as file:
        before = os.fstat(file.fileno())
        if not stat.S_ISREG(before.st_mode):
            raise OSError(errno.EINVAL, "no plain file")
        return file.read(MOST_BYTES + 1), before, os.fstat(file.fileno())


def written(data: bytes) -> str | None:
    """The text in `data`, if it looks like source that somebody wrote.  Pure."""
    encoding = "utf-8-sig"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    elif b"\0" in data:
        return None
    text = data.decode(encoding, "replace").replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text or text.count("\ufffd") > max(_FEW_ODD, len(text) // 100):
        return None
    if _is_minified(text) or _is_generated(text[:_HEAD]):
        return None
    return text


def _is_minified(text: str) -> bool:
    if len(text) < _FEW_BYTES:
        return False
    lines = text.split("\n")
    return len(text) > _LONG_ON_AVERAGE * len(lines) or max(map(len, lines)) > _LONGEST_LINE


def _is_generated(head: str) -> bool:
    """Whether a comment at the top says so."""
    if _GENERATED_GO.search(head):
        return True
    return any(_COMMENT.match(line) and _GENERATED.search(line) for line in head.split("\n")[:20])
