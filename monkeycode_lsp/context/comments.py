"""Does the cursor stand in a comment, in a string or in code?  (pure)

By the syntax tree where the document's grammar is at hand and its beginning is in the window (a tree that
begins in the middle takes code for comment); else by the text around the cursor.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from monkeycode_lsp.domain import Window
from monkeycode_lsp.syntax import grammars

Inside = Literal["code", "comment", "string"]

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

_MARKS = re.compile(r"#|//|--|;|%|/\*|<!--|[\"'`]")
_OVER_LINES = ("/*", '"""', "'''", "`", "[[", "=begin", "<<")
"""What may have begun a comment or a string on a line above."""
_ENDS = ("*/", "-->", "]]", "=end", "|#", "-}")
_INNER = ("interpolation", "substitution", "expansion")
"""Code inside a string."""
_STRINGS = re.compile(r"string|char_literal|character_literal|heredoc|^rune|^text_block|regex|template_literal")
_MOST_PARSED = 12_000
_MOST_AFTER = 2_000

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
    return inside(window) == "comment"


def inside(window: Window) -> Inside:
    """What the cursor stands in."""
    return _inside(window.prefix, window.suffix, window.language, window.whole_prefix)


@lru_cache(maxsize=8)
def _inside(prefix: str, suffix: str, language: str, whole_prefix: bool) -> Inside:  # noqa: FBT001 - the key of a cache
    # Without one of these marks there is nothing to find out.
    line = prefix[prefix.rfind("\n") + 1 :]
    if language not in _MARKUP and not _MARKS.search(line) and not any(mark in prefix for mark in _OVER_LINES):
        return "code"
    found = _by_tree(prefix, suffix[:_MOST_AFTER], language) if whole_prefix and len(prefix) <= _MOST_PARSED else None
    return found or _by_text(prefix, line, language)


def _by_tree(prefix: str, suffix: str, language: str) -> Inside | None:
    """None: there is no grammar, or the text is too broken to tell."""
    tree = grammars.parse(prefix + suffix, language)
    if tree is None:
        return None
    at = len(prefix.encode("utf-8", errors="replace"))
    node = tree.root_node.descendant_for_byte_range(max(0, at - 1), max(0, at - 1))
    while node is not None:
        if any(word in node.type for word in _INNER):
            return "code"
        if "comment" in node.type and node.start_byte < at <= node.end_byte:
            is_within = at < node.end_byte or not prefix.endswith(_ENDS)
            return "comment" if is_within and not prefix.endswith("\n") else _outside(at, node.end_byte)
        if _STRINGS.search(node.type) and node.start_byte < at < node.end_byte:
            return "string"
        node = node.parent
    return None if tree.root_node.has_error else "code"


def _outside(at: int, end: int) -> Inside:
    return "comment" if at < end else "code"


def _by_text(prefix: str, line: str, language: str) -> Inside:
    said = _STRING.sub("", line)
    mark = marker(language)
    is_prose = language in _MARKUP or language == "plaintext"
    unclosed = None if is_prose else _UNCLOSED.search(said)
    before = prefix[: len(prefix) - len(unclosed[0])] if unclosed else prefix
    if (mark and mark in _UNCLOSED.sub("", said)) or _ends_in_block(before, language):
        return "comment"
    return "string" if unclosed else "code"


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
