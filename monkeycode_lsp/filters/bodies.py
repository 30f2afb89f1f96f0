"""Blocks and the lines that belong into them."""

from __future__ import annotations

import re

from monkeycode_lsp.domain import Window
from monkeycode_lsp.filters import brackets
from monkeycode_lsp.filters.echo import last_line_above
from monkeycode_lsp.filters.indentation import n_columns

_NEEDS_BODY = frozenset({"python", "gdscript", "nim", "starlark", "cython"})
"""Languages in which a block without a statement is a fault."""
_STARTS_ANEW = re.compile(r"\s*(?:@|#|\"{3}|'{3})")
"""What may stand above a header."""
_LEAVES = re.compile(r"\s*(?:return|yield|await)\b")
_FUNCTION = re.compile(r"(?:async\s+)?(?:def|class)\b|\)")
_GOES_ON = re.compile(r"(?:elif|else|except|finally)\b")


def unless_body_is_missing(text: str, window: Window) -> str:
    """`except OSError:` is no answer where the body of `try:` has no statement yet."""
    if window.language not in _NEEDS_BODY:
        return text
    head = window.line_before if window.line_before.strip() else last_line_above(window)
    said = text.lstrip()
    if window.line_before.strip() and "\n" not in text[: len(text) - len(said)]:
        return text  # On the header's own line: `x if a else‸`.
    return "" if head.rstrip().endswith(":") and _GOES_ON.match(said) else text


def without_lost_lines(text: str, window: Window) -> str:
    """No lines that leave the block of which the very next line below goes on, unless they open one that it fits.

    Who has left a function does not come back to its `return`.
    """
    below = window.suffix[1 : window.suffix.find("\n", 1)] if window.suffix.startswith("\n") else ""
    floor = n_columns(below)
    if window.language not in _NEEDS_BODY or not below.strip() or not floor or "\n" not in text:
        return text
    lines = text.split("\n")
    opened = [False, *brackets.open_at_line_ends(text, window.language)]
    last: str | None = None
    first: int | None = None
    for index, line in enumerate(lines):
        if index and line.strip() and not opened[index] and n_columns(line) < floor and not _STARTS_ANEW.match(line):
            last = line
            first = index if first is None else first
    if first is None or last is None or _is_header(last, below):
        return text
    return "\n".join(lines[:first])


def _is_header(line: str, below: str) -> bool:
    """Whether `below` can stand in what `line` opens; nobody returns from a module."""
    is_open = line.rstrip().endswith((":", "(", "[", "{", ","))
    return is_open and not (_LEAVES.match(below) and n_columns(line) == 0 and not _FUNCTION.match(line))
