"""Markdown around code: chat models wrap what they say."""

from __future__ import annotations

import re
from functools import lru_cache

from monkeycode_lsp.context import comments
from monkeycode_lsp.domain import Window

_MARKUP = frozenset({"markdown", "mdx", "quarto", "rmd", "restructuredtext", "asciidoc", "plaintext", "latex"})
_FENCE = "```"
_SAID = r"[A-Z][\w'\u2019]*(?:[,!]?[ \t]+[\w'\u2019()`./-]+){2,}[:.!]?[ \t]*\n"
_OPEN = re.compile(rf"\s*(?:(?:{_SAID}\s*){{1,3}})?```[^\n`]*\n")
_MAY_OPEN = re.compile(rf"\s*(?:(?:{_SAID}\s*){{1,3}})?(?:`{{1,2}}|```[^\n`]*)?\Z")
_CLOSE = re.compile(r"(?:\A|\n)[ \t]*```")


def body(text: str, window: Window) -> tuple[int, int | None]:
    """Where the code begins and, where it is known, ends."""
    if _is_at_home(window):
        return 0, None
    opened = _OPEN.match(text)
    start = opened.end() if opened else 0
    closed = _CLOSE.search(text, start)
    # The fence's own line was consumed: a closing one directly below it has no line end before it.
    if opened and text.startswith(_FENCE, start):
        return start, start
    return start, closed.start() if closed else None


def may_open(text: str, window: Window) -> bool:
    """Whether the answer so far could still turn out to be wrapping."""
    return not _is_at_home(window) and bool(text.strip()) and bool(_MAY_OPEN.match(text))


def _is_at_home(window: Window) -> bool:
    """Where Markdown is what the user writes: in such a language, or inside a doc comment."""
    return window.language in _MARKUP or _is_open(window.prefix) or comments.in_block(window)


@lru_cache(maxsize=8)
def _is_open(prefix: str) -> bool:
    return prefix.count(_FENCE) % 2 == 1


def without_fence(text: str, window: Window) -> str:
    """What stands inside the fence, or before a stray one."""
    start, end = body(text, window)
    return text[start:end]
