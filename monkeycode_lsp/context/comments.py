"""Is the cursor inside a comment?  By the text around it, without a parser (pure)."""

from __future__ import annotations

import re
from functools import lru_cache

from monkeycode_lsp.domain import Window

_HASH = frozenset(
    {
        "python",
        "ruby",
        "perl",
        "shellscript",
        "bash",
        "sh",
        "zsh",
        "fish",
        "yaml",
        "toml",
        "r",
        "makefile",
        "dockerfile",
        "elixir",
        "julia",
        "nim",
        "powershell",
        "coffeescript",
        "cmake",
    }
)
_DASHES = frozenset({"sql", "lua", "haskell", "ada", "elm"})
_SEMICOLON = frozenset({"lisp", "clojure", "scheme", "racket", "asm", "ini", "emacs-lisp"})
_PERCENT = frozenset({"latex", "tex", "matlab", "erlang", "prolog"})
_MARKUP = frozenset({"html", "xml", "markdown", "svg", "vue", "svelte"})
_STRING = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\\n])*`")
"""Within one line: a lone apostrophe in a comment must not reach the next."""

_UNCLOSED = re.compile(r"(?<!\w)[\"'`].*")


def marker(language: str) -> str:
    """How a line comment begins in `language`; empty where there is none."""
    if language in _HASH:
        return "#"
    if language in _DASHES:
        return "--"
    if language in _SEMICOLON:
        return ";"
    if language in _PERCENT:
        return "%"
    return "" if language in _MARKUP or language == "plaintext" else "//"


def commented(text: str, language: str) -> str:
    """`text` as comment lines of `language`; unchanged where there are no line comments."""
    mark = marker(language)
    return "\n".join(f"{mark} {line}".rstrip() for line in text.split("\n")) if mark else text


def at_cursor(window: Window) -> bool:
    """Whether the cursor stands in a line or block comment."""
    line = _STRING.sub("", window.line_before)
    mark = marker(window.language)
    if mark and mark in _UNCLOSED.sub("", line):
        return True
    return in_block(window)


def in_block(window: Window) -> bool:
    """Whether the cursor stands in a block comment."""
    return _ends_in_block(window.prefix, window.language)


@lru_cache(maxsize=8)
def _ends_in_block(prefix: str, language: str) -> bool:
    opener, closer = block(language)
    if not opener or opener not in prefix:
        return False
    said = _without_strings(prefix, language)
    return said.rfind(opener) > said.rfind(closer)


def ends_below(window: Window) -> bool:
    """Whether the text after the cursor ends the block comment that the cursor stands in."""
    return in_block(window) and _ends_soon(window.suffix, window.language)


@lru_cache(maxsize=8)
def _ends_soon(suffix: str, language: str) -> bool:
    opener, closer = block(language)
    before, ended, _ = _without_strings(suffix, language).partition(closer)
    return bool(ended) and opener not in before


def block(language: str) -> tuple[str, str]:
    """How a block comment begins and ends in `language`; empty where there is none."""
    if language in _MARKUP:
        return "<!--", "-->"
    return ("/*", "*/") if marker(language) in {"//", "--"} else ("", "")


def _without_strings(text: str, language: str) -> str:
    return text if language in _MARKUP else _STRING.sub("", text)
