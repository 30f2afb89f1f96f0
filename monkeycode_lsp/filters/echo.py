"""Answers that begin by repeating what stands before the cursor."""

from __future__ import annotations

import re

from monkeycode_lsp.context import comments
from monkeycode_lsp.domain import Window

_TELLING = re.compile(r"[A-Za-z_].*[\s=.(]")
_LAST_WORD = re.compile(r"(?:\A|\s)([^\W\d_]{2,}) \Z")
_SAYS_MORE = re.compile(r"\w\W+\w|\w\(")
_PROSE = frozenset({"markdown", "plaintext", "latex", "tex", "restructuredtext", "asciidoc", "git-commit"})
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
    above = last_line_above(window).strip()
    # `try:` may stand in `try:`.
    if not _OPENS.search(above) or not _SAYS_MORE.search(above):
        return text
    first, _, rest = text.lstrip("\n").partition("\n")
    return rest if first.strip() == above else text


def last_line_above(window: Window) -> str:
    """The nearest line above the cursor's with text on it."""
    above = window.prefix[: len(window.prefix) - len(window.line_before)].rstrip()
    return above[above.rfind("\n") + 1 :]


def without_doubled_word(text: str, window: Window) -> str:
    """In prose, `the ‸` + `the sum` → `sum`."""
    before = window.line_before
    word = _LAST_WORD.search(before)
    if word is None or not text.startswith(word[1]) or text[len(word[1]) : len(word[1]) + 1] != " ":
        return text
    is_prose = window.language in _PROSE or comments.at_cursor(window)
    return text[len(word[1]) + 1 :] if is_prose else text
