"""Is the cursor inside a comment?  By the text around it, without a parser (pure)."""

from __future__ import annotations

import re

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
    opener, closer = ("<!--", "-->") if window.language in _MARKUP else ("/*", "*/")
    if mark not in {"//", "--"} and opener == "/*":
        return False
    prefix = window.prefix if opener == "<!--" else _STRING.sub("", window.prefix)
    return prefix.rfind(opener) > prefix.rfind(closer)
