"""Which names the code at the cursor deals with, most telling first: what is defined elsewhere and used here.

Read from the text's words, without a tree: text at a cursor is unfinished, and this is done for every ask.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from monkeycode_lsp.symbols import imports, receivers
from monkeycode_lsp.symbols.words import NOISE

MAX_NAMES = 40
_LINES_ABOVE, _LINES_BELOW = 60, 12
_MAX_ABOVE, _MAX_BELOW, _MAX_TOP = 5_000, 1_200, 12_000
"""Characters that are looked at: before and after the cursor, and at the text's beginning for imports."""

_MIN_NAME, _MAX_NAME = 3, 80
_STRING = re.compile(r"\"(?:\\.|[^\"\\\n])*+\"|'(?:\\.|[^'\\\n])*+'")
_HASH = frozenset({"python", "ruby", "shellscript", "bash", "yaml", "toml", "r", "perl", "elixir", "julia", "makefile", "dockerfile"})
_COMMENT = {True: re.compile(r"(?m)(?:^|(?<=\s))#.*+$"), False: re.compile(r"(?m)//.*+$|^\s*+(?:/?\*|--).*+$")}
_WORD = re.compile(r"[^\W\d][\w$]*+")
_BOUND = re.compile(
    r"\b(?:def|class|func|fn|fun|function|struct|enum|interface|trait|type|module|namespace|object|protocol|record)\s++(?:\([^)\n]*+\)\s*+)?([^\W\d]\w*+)"
    r"|\b(?:let|const|var|val|for|local|auto)\s++(?:mut\s++)?([^\W\d]\w*+)"
    r"|(?m:^[ \t]*+([^\W\d]\w*+)[ \t]*+(?::[^=\n]++)?(?::=|=(?![=>])))"
    r"|\bas\s++([^\W\d]\w*+)"
)
_CALLED, _TYPED, _PLAIN = 2.0, 1.6, 1.0
_IMPORTED, _MEMBER = 3.0, 0.8


def near(before: str, after: str, language: str) -> list[str]:
    """Names used around the cursor, at most `MAX_NAMES`.

    The types of what the cursor completes a member of come first.  Without keywords, what is defined
    in the text itself, very short names, and the word that is being typed.
    """
    above = _tail(before)
    below = after[:_MAX_BELOW].split("\n", _LINES_BELOW)
    known = _imported(before, language)
    weights: dict[str, float] = defaultdict(float)
    line_before, _, rest_above = _halves(above)
    _weigh(weights, _calm(line_before + " " + below[0], language), 3.0, known)
    for distance, line in enumerate(reversed(_calm(rest_above, language).split("\n")), start=1):
        _weigh(weights, line, 2.0 / (1 + 0.15 * distance), known)
    for distance, line in enumerate(_calm("\n".join(below[1:]), language).split("\n"), start=1):
        _weigh(weights, line, 1.0 / (1 + 0.25 * distance), known)
    first = [*receivers.types(before, after, language), *called(before)]
    bound = _bound(above) - known
    ranked = sorted(weights, key=lambda name: -weights[name])
    return list(_chosen([*first, *ranked], frozenset(bound), unfinished(before)))


def unfinished(before: str) -> str:
    """The word that is being typed; empty between words.  What a wanted name begins with."""
    word = re.search(r"[^\W\d][\w$]*\Z", before[-_MAX_NAME:])
    return word[0] if word else ""


def called(before: str) -> list[str]:
    """The function whose arguments the cursor stands in, and what it is called on: `c`, `b`, `a` of `a.b.c(x, ‸`."""
    tail = before[-500:]
    depth = 0
    for offset in range(len(tail) - 1, -1, -1):
        character = tail[offset]
        if character in ")]}":
            depth += 1
        elif character in "([{":
            if character == "(" and not depth:
                chain = re.search(r"[^\W\d][\w$]*(?:(?:\.|::|->|\?\.)[^\W\d][\w$]*)*\Z", tail[:offset][-200:])
                return _WORD.findall(chain[0])[::-1] if chain else []
            depth -= 1
            if depth < 0:
                return []
    return []


def _tail(before: str) -> str:
    """The lines above the cursor that count."""
    lines = before[-_MAX_ABOVE:].split("\n")
    return "\n".join(lines[-_LINES_ABOVE:])


def _halves(above: str) -> tuple[str, str, str]:
    rest, newline, line = above.rpartition("\n")
    return line, newline, rest


def _calm(text: str, language: str) -> str:
    """Without strings and comments."""
    return _COMMENT[language in _HASH].sub("", _STRING.sub("''", text))


def _imported(before: str, language: str) -> frozenset[str]:
    """Names that the text imports: they are certainly defined elsewhere."""
    return frozenset(name for imported in imports.read(before[:_MAX_TOP], language) for name in imported.here)


def _weigh(weights: dict[str, float], line: str, weight: float, known: frozenset[str]) -> None:
    for found in _WORD.finditer(line):
        name = found[0]
        if len(name) < _MIN_NAME or name in NOISE:
            continue
        follows = line[found.end() : found.end() + 1]
        kind = _CALLED if follows == "(" else _TYPED if name[0].isupper() else _PLAIN
        if name in known:
            kind *= _IMPORTED
        elif line[found.start() - 1 : found.start()] == ".":
            kind *= _MEMBER
        weights[name] = max(weights[name], weight * kind)


def _bound(above: str) -> set[str]:
    """Names that the text itself defines."""
    return {name for found in _BOUND.findall(above) for name in found if name}


def _chosen(names: Iterable[str], bound: frozenset[str], typed: str) -> list[str]:
    chosen: dict[str, None] = {}
    for name in names:
        if _MIN_NAME <= len(name) <= _MAX_NAME and name not in NOISE and name not in bound and name != typed:
            chosen[name] = None
            if len(chosen) == MAX_NAMES:
                break
    return list(chosen)
