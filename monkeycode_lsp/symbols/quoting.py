"""Pieces of a source, made fit to be quoted: dedented, in one line, or cut to a bound.

A source is its UTF-8 bytes, because a tree's offsets are.  Nothing here costs more than what is quoted.
"""

from __future__ import annotations

import re

from monkeycode_lsp.symbols.model import MAX_LINES, MAX_TEXT

MAX_LINE = 160
_MOST_BYTES = 4 * MAX_TEXT
_AFTER_OPENER = re.compile(r"(?<=[(\[]) (?=\S)")
_BEFORE_CLOSER = re.compile(r",? (?=[)\]])")


def text(source: bytes, start: int, end: int) -> str:
    """As it is written; of a very long piece only the beginning."""
    return source[start : min(end, start + _MOST_BYTES)].decode("utf-8", errors="ignore")


def dedented(source: bytes, start: int, end: int) -> str:
    """As it is written, with the indentation of its first line taken from the others."""
    quoted = text(source, start, end)
    if "\n" not in quoted:
        return quoted
    lead = source[source.rfind(b"\n", max(0, start - MAX_LINE), start) + 1 : start]
    indent = lead[: len(lead) - len(lead.lstrip())].decode("utf-8", errors="ignore")
    first, *others = quoted.split("\n")
    return "\n".join([first, *(_without(line, indent) for line in others)])


def _without(line: str, indent: str) -> str:
    if line.startswith(indent):
        return line[len(indent) :]
    blank = len(line) - len(line.lstrip())
    return line[min(blank, len(indent)) :]


def one_line(quoted: str, limit: int = MAX_LINE) -> str:
    """In a single line, cut where it is too long."""
    if "\n" in quoted:
        quoted = " ".join(line for line in map(str.strip, quoted.split("\n")) if line)
        quoted = _BEFORE_CLOSER.sub("", _AFTER_OPENER.sub("", quoted))
    quoted = quoted.strip()
    return quoted if len(quoted) <= limit else quoted[: limit - 4].rstrip() + " ..."


def bounded(quoted: str) -> str:
    """At most what a symbol's text may have."""
    lines = quoted.split("\n")
    if len(lines) > MAX_LINES:
        quoted = "\n".join([*lines[: MAX_LINES - 1], "..."])
    if len(quoted) > MAX_TEXT:
        cut = quoted[: MAX_TEXT - 4]
        quoted = cut[: cut.rfind("\n") if "\n" in cut else len(cut)].rstrip() + "\n..."
    return quoted
