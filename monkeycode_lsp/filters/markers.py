"""Control tokens that came through as text."""

from __future__ import annotations

import re

from monkeycode_lsp.domain import Window

_LEAK = re.compile(
    r"<\|[A-Za-z][\w.-]*\|>"
    r"|<\uff5c[^\s<>]+>"
    r"|<\[(?:fim-\w+|[A-Za-z]+\u2581[\w\u2581]+)\]>"
    r"|</?fim[_-](?:prefix|suffix|middle|pad)>"
    r"|<(?:file_sep|repo_name|reponame|end_of_turn|start_of_turn|EOT)>"
    r"|\u2581?<(?:PRE|SUF|MID|EOT)>"
    r"|(?<![\w)\]])\[(?:SUFFIX|PREFIX|MIDDLE)\]"
    r"|</s>(?=\s*\Z)"
)
_PIECE = re.compile(r"<(?:\|(?:fim|endof|end_of|im_|file_|repo_|start_)\w*\|?|\uff5c[^\s<>]*|\[fim-?\w*\]?)\Z")
_THOUGHT = re.compile(r"\A\s*<think>.*?(?:</think>\s*|\Z)", re.DOTALL)


def start(text: str, window: Window) -> int | None:
    """Where the first one begins.  What the user's own file talks about is no leak."""
    for match in _LEAK.finditer(text):
        if match.group() not in window.prefix and match.group() not in window.suffix:
            return match.start()
    return None


def without_markers(text: str, window: Window) -> str:
    """Whatever follows a control token belongs to another file or another turn."""
    text = text[: start(text, window)]
    piece = _PIECE.search(text)
    return text[: piece.start()] if piece else text


def n_thought(text: str) -> int:
    """Length of a thinking model's monologue before its answer."""
    thought = _THOUGHT.match(text)
    return thought.end() if thought else 0


def without_thoughts(text: str, _window: Window) -> str:
    """The answer without what led to it."""
    return text[n_thought(text) :]
