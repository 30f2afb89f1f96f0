"""Blocks that are still without a body."""

from __future__ import annotations

import re

from monkeycode_lsp.domain import Window
from monkeycode_lsp.filters.echo import last_line_above

_NEEDS_BODY = frozenset({"python", "gdscript", "nim", "starlark", "cython"})
"""Languages in which a block without a statement is a fault."""
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
