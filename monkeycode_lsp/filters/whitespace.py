"""Blanks at the ends of an answer."""

from __future__ import annotations

import re

from monkeycode_lsp.context import comments
from monkeycode_lsp.domain import Window

_LAST_BREAK = re.compile(r"\n[ \t]*\Z")


def without_doubled_blank(text: str, window: Window) -> str:
    """`x = ‸` + ` 1` → `1`, but `x =‸` + ` 1` stays.  Two blanks before `#` are a habit and stay."""
    if not window.line_before.strip() or window.line_before[-1] not in " \t" or text[:1] not in (" ", "\t"):
        return text
    said = text.lstrip(" \t")
    if said.startswith("\n") or (said.startswith("#") and comments.marker(window.language) == "#"):
        return text
    return said


def without_end(text: str, window: Window) -> str:
    """No blank lines and no blanks at the end, unless text follows on the cursor's line."""
    said = text.rstrip()
    rest = window.line_after
    if not rest.strip() or not said:
        return said
    broken = _LAST_BREAK.search(text)
    if broken and (not window.line_before.strip() or "\n" in said):
        # A whole line before existing text: that text keeps its own line and its own depth.
        return said + (f"\n{window.line_before}" if not window.line_before.strip() else broken.group())
    tail = text[len(said) :]
    return said if "\n" in tail or rest[0] in " \t" else said + tail
