"""What a text defines by the look of its lines, for languages without a grammar at hand."""

from __future__ import annotations

import re

from monkeycode_lsp.symbols.model import Kind, Symbol
from monkeycode_lsp.symbols.quoting import bounded, one_line

MAX_LINE = 300
"""A longer line is data."""

_MAX_SYMBOLS = 2_000
_SHORT = 8
_MAX_BLOCK = 2_000
_CALM = r"(?:(?:export|default|public|private|protected|internal|static|final|abstract|sealed|open|override|async|pub(?:\([^)]*\))?|inline|virtual|data|case|local|declare|unsafe|extern|partial|suspend|implicit)\s+)*"  # fmt: skip
_CLASS = r"(?P<class>(?:enum )?class|struct|interface|enum|trait|protocol|object|record|union|defmodule|contract)"
_FUNCTION = r"(?P<function>def|defp|defmacro|fn|func|fun|function|sub|proc|macro)"
_TYPE = r"(?P<type>type|typealias)"
_MODULE = r"(?P<module>module|namespace|package|mod)"
_DEFINES = re.compile(
    rf"^(?P<indent>[ \t]*){_CALM}(?:{_CLASS}|{_FUNCTION}|{_TYPE}|{_MODULE})\s+(?:\([^)]*\)\s*)?(?P<name>[^\W\d][\w.:?!]*)"
)
_KINDS: tuple[Kind, ...] = ("class", "function", "type", "module")


def extract(text: str, language: str) -> list[Symbol]:
    """Lines that begin as definitions do; a symbol's text is its line, or the whole block if that is short."""
    if language in {"plaintext", "markdown", "json", "yaml", "toml", "html", "css", "xml", "csv"}:
        return []
    lines = text.split("\n")
    symbols: list[Symbol] = []
    classes: list[tuple[int, str, str]] = []
    for number, line in enumerate(lines):
        found = _DEFINES.match(line) if len(line) <= MAX_LINE else None
        if found is None:
            continue
        indent, name = len(found["indent"].expandtabs(4)), re.split(r"[.:]", found["name"].rstrip(".:"))[-1]
        kind: Kind = next(kind for kind in _KINDS if found[kind])
        while classes and classes[-1][0] >= indent:
            classes.pop()
        if not name:
            continue
        end = _end(lines, number, indent)
        _, container, header = classes[-1] if classes else (0, "", "")
        if kind == "class":
            classes.append((indent, name, one_line(line)))
        kind = "method" if kind == "function" and container else kind
        symbols.append(Symbol(name, kind, container, number, end, _text(lines[number : end + 1], found["indent"]), header))
        if len(symbols) == _MAX_SYMBOLS:
            break
    return symbols


def _end(lines: list[str], start: int, indent: int) -> int:
    """The last line of the block: deeper lines, and the closer that stands as deep as the opener."""
    end = start
    for number in range(start + 1, min(len(lines), start + _MAX_BLOCK)):
        line = lines[number]
        stripped = line.strip()
        if not stripped:
            continue
        depth = len(line[: len(line) - len(line.lstrip())].expandtabs(4))
        if depth <= indent:
            if depth == indent and stripped.startswith(("{", "}", "end", ")")):
                end = number
                if stripped.startswith(("}", "end")):
                    break
                continue
            break
        end = number
    return end


def _text(block: list[str], indent: str) -> str:
    shown = block if len(block) <= _SHORT else [block[0].rstrip() + " ..."]
    return bounded("\n".join(line.removeprefix(indent)[:MAX_LINE] for line in shown).strip() or "...")
