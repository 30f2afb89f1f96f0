"""Which names the code at the cursor deals with, most telling first: what is defined elsewhere and used here.

Read from the text's words, without a tree: text at a cursor is unfinished, and this is done for every ask.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from monkeycode_lsp.symbols import imports, receivers
from monkeycode_lsp.symbols.words import NOISE

MAX_NAMES = 40
_LINES_ABOVE, _LINES_BELOW = 60, 12
_MAX_ABOVE, _MAX_BELOW, _MAX_TOP, _MAX_CALL = 5_000, 1_200, 12_000, 500
"""Characters that are looked at: before and after the cursor, and at the text's beginning for imports."""

_MIN_NAME, _MAX_NAME = 3, 80
_STRING = re.compile(r"\"(?:\\.|[^\"\\\n])*+\"|'(?:\\.|[^'\\\n])*+'")
_HASH = frozenset({"python", "ruby", "shellscript", "bash", "yaml", "toml", "r", "perl", "elixir", "julia", "makefile", "dockerfile"})
_COMMENT = {True: re.compile(r"(?m)(?:^|(?<=\s))#.*+$"), False: re.compile(r"(?m)//.*+$|^\s*+(?:/?\*|--).*+$")}
_PARAMETERS = re.compile(r"\b(?:def|func|fn|fun|function|lambda)\b[^(\n]{0,100}\((?P<all>[^()]{0,600})")
_CALLEE = re.compile(r"[^\W\d][\w$]*+(?:(?:\.|::|->|\?\.)[^\W\d][\w$]*+)*+\Z")
_WORD = re.compile(r"[^\W\d][\w$]*+")
_BOUND = re.compile(
    r"\b(?:def|class|func|fn|fun|function|struct|enum|interface|trait|type|module|namespace|object|protocol|record)\s++(?:\([^)\n]*+\)\s*+)?([^\W\d]\w*+)"
    r"|\b(?:let|const|var|val|for|local|auto)\s++(?:mut\s++)?([^\W\d]\w*+)"
    r"|(?m:^[ \t]*+([^\W\d]\w*+)[ \t]*+(?::[^=\n]++)?(?::=|=(?![=>])))"
    r"|\bas\s++([^\W\d]\w*+)"
)
_IMPORT = re.compile(r"(?m)^[ \t]*+(?:import|from|use|using|#[ \t]*include|require|require_relative|package|namespace)\b.*+$")
_DOCSTRING = re.compile(r'"""(?:[^"]++|"(?!""))*+(?:"""|\Z)')
_CALLED, _TYPED, _PLAIN = 2.0, 1.6, 0.15
"""What a word is worth by its look.  A plain one is mostly a local variable or a field: no definition is to be had of it."""

_IMPORTED = 3.0
_IMPORTED_ONLY = 0.1
"""Of a name that is imported and not used near."""


def near(before: str, after: str, language: str) -> list[str]:
    """Names used around the cursor, at most `MAX_NAMES`.

    First the types of what the cursor completes a member of, or with a sign at its end (`shop.pricing.`, `pricing::`) the module
    that it may be; then the function that is being called.
    Without keywords, what is defined in the text itself, very short names, and the word that is being typed.
    """
    above = _above(before, language)
    known = _imported(before, language)
    weights = dict(known)
    below = _calm(after[:_MAX_BELOW], language).split("\n", _LINES_BELOW)
    rest, _, line = above.rpartition("\n")
    _weigh(weights, f"{line} {below[0]}", 3.0, known)
    for distance, other in enumerate(reversed(rest.split("\n")), start=1):
        _weigh(weights, other, 2.0 / (1 + 0.15 * distance), known)
    for distance, other in enumerate(below[1:_LINES_BELOW], start=1):
        _weigh(weights, other, 1.0 / (1 + 0.25 * distance), known)
    ranked = sorted(weights, key=lambda name: -weights[name])
    types = receivers.types(before)
    module = [] if types else list(filter(None, [receivers.module(before)]))
    chosen = _chosen([*types, *called(before), *ranked], _bound(above) - known.keys(), unfinished(before))
    return [*module, *chosen][:MAX_NAMES]


def unfinished(before: str) -> str:
    """The word that is being typed; empty between words.  What a wanted name begins with."""
    word = re.search(r"[^\W\d][\w$]*\Z", before[-_MAX_NAME:])
    return word[0] if word else ""


def called(before: str) -> list[str]:
    """What the call is about whose arguments the cursor stands in: of `a.b.c(x, ‸` the types of `a.b`, then `c`, `b`, `a`."""
    tail = before[-_MAX_CALL:]
    depth = 0
    for offset in range(len(tail) - 1, -1, -1):
        character = tail[offset]
        if character in ")]":
            depth += 1
        elif character in "{};":
            return []
        elif character in "([" and depth:
            depth -= 1
        elif character == "(":
            chain = _CALLEE.search(tail, max(0, offset - 200), offset)
            if chain is None:
                return []
            names = _WORD.findall(chain[0])[::-1]
            return [*names[:1], *receivers.types(before[: len(before) - len(tail) + offset]), *names[1:]]
    return []


def _above(before: str, language: str) -> str:
    """The lines above the cursor that count, without strings, comments and imports."""
    lines = before[-_MAX_ABOVE:].split("\n")
    above = "\n".join(lines[-_LINES_ABOVE:])
    if language == "python" and before.count('"""', 0, len(before) - len(above)) % 2:
        above = '"""' + above  # it begins inside a docstring
    return _IMPORT.sub("", _calm(above, language))


def _calm(text: str, language: str) -> str:
    """Without strings and comments."""
    if language == "python":
        text = _DOCSTRING.sub("", text)
    return _COMMENT[language in _HASH].sub("", _STRING.sub("''", text))


def _imported(before: str, language: str) -> dict[str, float]:
    """Names that the text imports: they are certainly defined elsewhere."""
    return dict.fromkeys(
        (
            name
            for imported in imports.read(before[:_MAX_TOP], language)
            for name in imported.here
            if len(name) >= _MIN_NAME and name not in NOISE
        ),
        _IMPORTED_ONLY,
    )


def _weigh(weights: dict[str, float], line: str, weight: float, known: dict[str, float]) -> None:
    for found in _WORD.finditer(line):
        name = found[0]
        if len(name) < _MIN_NAME or name in NOISE:
            continue
        kind = _CALLED if line.startswith("(", found.end()) else _TYPED if name[0].isupper() else _PLAIN
        if name in known:
            kind = _IMPORTED
        weights[name] = max(weights.get(name, 0.0), weight * kind)


def _bound(above: str) -> set[str]:
    """Names that the text itself defines."""
    bound = {name for found in _BOUND.findall(above) for name in found if name}
    for found in _PARAMETERS.finditer(above):
        for parameter in found["all"].split(","):
            bound.update(name for name in _WORD.findall(parameter)[:2] if name not in NOISE and not name[0].isupper())
    return bound


def _chosen(names: Iterable[str], bound: set[str], typed: str) -> list[str]:
    chosen: dict[str, None] = {}
    for name in names:
        if _MIN_NAME <= len(name) <= _MAX_NAME and name not in NOISE and name not in bound and name != typed:
            chosen[name] = None
            if len(chosen) == MAX_NAMES:
                break
    return list(chosen)
