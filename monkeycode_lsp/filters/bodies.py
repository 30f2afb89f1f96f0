"""Blocks and the lines that belong into them."""

from __future__ import annotations

import re

from monkeycode_lsp.context import comments
from monkeycode_lsp.domain import Window
from monkeycode_lsp.filters import brackets
from monkeycode_lsp.filters.echo import last_line_above
from monkeycode_lsp.filters.indentation import n_columns

_NEEDS_BODY = frozenset({"python", "gdscript", "nim", "starlark", "cython"})
"""Languages in which a block without a statement is a fault."""
_OUTSIDE = re.compile(r"[^\s@#)\]}\"'\\]")
_QUOTES = ('"""', "'''")
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
    """No lines outside everything before one that goes on inside of a block, unless they open one that it fits.

    Who has left a function does not come back to its `return`.
    """
    below = window.suffix[1:].partition("\n")[0] if window.suffix.startswith("\n") else ""
    if window.language not in _NEEDS_BODY or "\n" not in text or not below.strip() or not n_columns(below):
        return text
    lines = text.split("\n")
    opened = [False, *brackets.open_at_line_ends(text, window.language)]
    outside = [index for index, line in enumerate(lines) if index and _OUTSIDE.match(line) and not opened[index]]
    if not outside or _is_header(lines[outside[-1]], below) or any(mark in text for mark in _QUOTES) or comments.inside(window) != "code":
        return text
    first = outside[0]
    while first > 1 and (not lines[first - 1].strip() or lines[first - 1][0] in "#@"):
        first -= 1  # What leads up to it goes with it.
    return "\n".join(lines[:first])


def _is_header(line: str, below: str) -> bool:
    """Whether `below` can stand in what `line` opens; nobody returns from a module."""
    goes_on = line.rstrip().endswith((":", "(", "[", "{", ",", "\\"))
    return goes_on and (_FUNCTION.match(line) is not None or not _LEAVES.match(below))
