"""Answers that begin by repeating what stands before the cursor."""

from __future__ import annotations

import re

from monkeycode_lsp.domain import Window

_TELLING = re.compile(r"[A-Za-z_].*[\s=.(]")
_OPENS = re.compile(r"(?:[:{]|=>|->|\bdo|\bthen)\s*\Z")


def without_line(text: str, window: Window) -> str:
    """`x = ‸` + `x = 1` → `1`."""
    said = window.line_before.lstrip()
    # `max(` before `max(a, b), c)` is a call in a call; only a line that says more than one word can be an echo.
    if not re.search(r"[\s=]", said.strip()) and not said.endswith((" ", "=")):
        return text
    if not _TELLING.match(said):
        return text
    begun = text.lstrip(" \t")
    return begun[len(said) :] if begun.startswith(said) else text


def without_line_above(text: str, window: Window) -> str:
    """The line that opens the block, said again at the block's first line."""
    if window.line_before.strip():
        return text
    above = window.prefix[: len(window.prefix) - len(window.line_before)].rstrip()
    above = above[above.rfind("\n") + 1 :].strip()
    first, newline, rest = text.partition("\n")
    return rest if newline and first.strip() == above and _OPENS.search(above) else text
