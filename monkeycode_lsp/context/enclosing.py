"""What of the document itself the window leaves out: its imports, and the heads of what encloses the cursor (pure).

By the lines' beginnings and their indentation, so that it works in every language and on broken code.
Looks at a bounded number of lines, at the document's head and above the window.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from monkeycode_lsp.context.place import Place
from monkeycode_lsp.domain import Snippet
from monkeycode_lsp.text import lf

HEAD_LINES = 400
"""Imports are looked for in so many lines."""
MOST_IMPORT_LINES = 40
ABOVE_LINES = 3_000
"""So far up an enclosing head is looked for."""
_HEADER_LINES = 10
"""Of one head, such as a function's parameters."""
_LONGEST_LINE = 300
_IMPORT = re.compile(
    r"(?:import|from|use|using|pub\s+use|include|#\s*include|#\s*import|@import|require(?:_relative)?|package|open|alias|extern\s+crate)\b"
    r"|namespace\b.*;|(?:const|let|var|local)\s+[\w{}\s,:$]+=\s*require\b"
)
_HEAD = re.compile(
    r"(?:[@\w\[\](),.*&<>:\s]*\s)?"
    r"(?:class|def|func|function|fn|interface|trait|impl|struct|enum|module|object|protocol|extension|record|namespace|sub|defmodule|defp)\b"
    r"|[\w<>\[\],.*&:~\s]{2,}\((?!.*;)"
    r"|[\w$.\s]*[=:]\s*(?:async\s*)?(?:function\b|\([^;]*=>|\w+\s*=>)"
)
_NO_HEAD = re.compile(
    r"(?:if|else|elif|for|foreach|while|switch|match|case|when|try|catch|except|finally|with|do|loop|return|await|unless|select)\b"
)
_NOT_CODE = ("#", "//", "/*", "*", "--", "<!--", '"""', "'''")
_CLOSERS = (")", "]", "}", "{", "->", "where ")


def own(lines: Sequence[str], place: Place) -> list[Snippet]:
    """The imports, if some are above the window, and the heads of the functions and classes around the cursor that begin above it."""
    if place.first <= 0:
        return []
    found = []
    # All of them, though the window may show some: a text that grows while the window moves down would change the prompt.
    imported = "\n".join(_imports(lines)) if any(_imports(lines[: min(place.first, HEAD_LINES)])) else ""
    if imported:
        found.append(Snippet(path=place.path, text=imported, kind="own", score=1.0))
    heads = "\n".join(_heads(lines, place))
    if heads:
        found.append(Snippet(path=place.path, text=heads, kind="own", score=0.9))
    return found


def _imports(lines: Sequence[str]) -> Iterator[str]:
    """The lines of the import statements, also of those that go on over several lines."""
    n_found, n_open = 0, 0
    for raw in lines[:HEAD_LINES]:
        line = _shown(raw)
        if n_open <= 0 and not _IMPORT.match(line):
            continue
        n_open = max(0, n_open) + sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))
        yield line
        n_found += 1
        if n_found == MOST_IMPORT_LINES:
            return


def _heads(lines: Sequence[str], place: Place) -> list[str]:
    """Outermost first."""
    level = _level_at(lines, place)
    heads: list[list[str]] = []
    at = min(place.line, len(lines)) - 1
    lowest = max(0, place.line - ABOVE_LINES)
    while at >= lowest and level > 0:
        line = _shown(lines[at])
        indent = _indent(line)
        if not line.strip() or indent >= level or line.lstrip().startswith(_NOT_CODE):
            at -= 1
            continue
        start = _start(lines, at, indent)
        level = indent
        if at < place.first:
            head = [_shown(raw) for raw in lines[start : at + 1]]
            if _is_head(head[0].strip()):
                heads.append(head)
        at = start - 1
    return [line for head in reversed(heads) for line in head]


def _level_at(lines: Sequence[str], place: Place) -> int:
    """How far the code at the cursor is indented: its line, or the nearest one above that is not blank."""
    line = _shown(lines[place.line]) if place.line < len(lines) else ""
    if line.strip():
        return _indent(line)
    above = (_shown(lines[at]) for at in range(min(place.line, len(lines)) - 1, max(-1, place.first - 1), -1))
    return max(_indent(line), next((_indent(other) for other in above if other.strip()), 0))


def _start(lines: Sequence[str], at: int, indent: int) -> int:
    """Where the statement begins that ends at line `at`: a head may go on over several lines, or have its brace on its own."""
    for start in range(at, max(-1, at - _HEADER_LINES), -1):
        line = _shown(lines[start])
        if line.strip() and _indent(line) == indent and not line.lstrip().startswith(_CLOSERS):
            return start
        if _indent(line) < indent and line.strip():
            break
    return at


def _is_head(line: str) -> bool:
    return _NO_HEAD.match(line) is None and _HEAD.match(line) is not None


def _shown(line: str) -> str:
    return lf(line[:_LONGEST_LINE]).rstrip("\n")


def _indent(line: str) -> int:
    line = line.expandtabs(4)
    return len(line) - len(line.lstrip())
