"""Of which type is what the cursor completes a member of?  By what the text says of it, for the plain cases.

`x = Foo(…)`, `x: Foo`, `Foo x`, `x := &Foo{…}`, a parameter, an attribute of `self`: then `Foo`, whose
outline is what a model needs at `x.`.  Where only a call is known, the called function: its signature tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from monkeycode_lsp.symbols.words import NOISE

MAX_TYPES = 4
_MAX_ABOVE = 12_000
_MAX_CHAIN = 300
_MAX_PLACES = 60
"""Places of a name that are looked at, nearest first."""

_CHAIN = re.compile(r"([^\W\d][\w$]*+)((?:\(\))?(?:\.|::|->|\?\.)(?:[^\W\d][\w$]*(?:\(\))?(?:\.|::|->|\?\.)){0,8})[\w$]*\Z")
_SEPARATOR = re.compile(r"\.|::|->|\?\.|\(\)")
_WORD = re.compile(r"[^\W\d][\w$]*+")
_SELF = frozenset({"self", "this", "cls", "super", "Self", "base"})
_HEADER = re.compile(
    r"(?m)^[ \t]*+(?:[a-z@]\w*+[ \t]++){0,5}?(?:class|struct|interface|trait|object|protocol|record|enum)[ \t]++\w++(?P<bases>[^\n{]{0,200})"
    r"|^[ \t]*+impl\b(?:<[^>\n]{0,100}>)?(?P<impl>[^\n{]{1,200})"
)
_IN_HEADERS = frozenset({"extends", "implements", "with", "for", "where", "metaclass", "permits"})

_ASSIGNED = re.compile(r"[ \t]*+(?::=|=(?![=>]))[ \t]*+")
_TYPED = re.compile(r"\??[ \t]*+:(?![:=])[ \t]*+|[ \t]++(?=[*\[\]&]*+[A-Za-z_][\w.\[\]]*+[ \t]*+[,)\n{`])")
_ENTERED = re.compile(r"(?:with|=|using)[ \t]+(?P<of>[^\n]{1,120}?)[ \t]+as[ \t]+\Z")
_BEFORE = re.compile(r"(?P<of>[A-Z][\w.]{0,60}(?:<[^;\n(){}=]{0,80}>)?(?:\[\])?)[ \t*&]+\Z")
_ENDS = re.compile(r"[ \t]*+[=;,):\n]")


def types(before: str) -> list[str]:
    """Likely types of the receiver at the cursor, most likely first; empty if the cursor does not complete a member."""
    chain = _CHAIN.search(before[-_MAX_CHAIN:])
    if chain is None:
        return []
    root = chain[1]
    parts = [part for part in _SEPARATOR.split(chain[2]) if part]
    above = before[-_MAX_ABOVE:]
    if root in _SELF:
        found = _of(above, parts[-1]) if parts else _bases(above)
    else:
        found = _of(above, parts[-1] if parts else root) or (_of(above, root) if parts else [])
        if root[:1].isupper() and not parts:
            found = [root, *found]  # the class itself
    return list(dict.fromkeys(found))[:MAX_TYPES]


def module(before: str) -> str:
    """What the cursor completes a member of as it is written, if that may be an imported module: `shop.pricing.`; else empty."""
    chain = _CHAIN.search(before[-_MAX_CHAIN:])
    if chain is None or chain[1] in _SELF or "()" in chain[2] or chain[2].startswith(("->", "?")):
        return ""
    return chain[1] + chain[2]


def _bases(above: str) -> list[str]:
    """What the class around the cursor is made from: it is what is not seen here."""
    headers = list(_HEADER.finditer(above))
    written = (headers[-1]["bases"] or headers[-1]["impl"] or "") if headers else ""
    return [name for name in _WORD.findall(written) if name not in NOISE and name not in _IN_HEADERS and name[:1].isupper()]


def _of(above: str, name: str) -> list[str]:
    """What the nearest binding of `name` says of its type."""
    for start in _places(above, name):
        end = start + len(name)
        lead = above[max(0, start - 160) : start]
        typed = _TYPED.match(above, end)
        found = _annotated(above[typed.end() : typed.end() + 160]) if typed is not None else []
        if not found and _ENDS.match(above, end):
            written = _BEFORE.search(lead) or _ENTERED.search(lead)
            found = (_annotated(written["of"]) if written.re is _BEFORE else _constructed(written["of"])) if written is not None else []
        assigned = _ASSIGNED.match(above, end) if not found else None
        if assigned is not None:
            found = _constructed(above[assigned.end() : assigned.end() + 160])
        if found:
            return found
    return []


def _places(above: str, name: str) -> Iterator[int]:
    """Where the whole word stands, nearest to the cursor first."""
    end = len(above)
    for _ in range(_MAX_PLACES):
        end = above.rfind(name, 0, end)
        if end < 0:
            return
        around = above[max(0, end - 1) : end] + above[end + len(name) : end + len(name) + 1]
        if not any(character.isalnum() or character in "_$" for character in around):
            yield end


_CALL = re.compile(
    r"(?:(?:await|new|try|return|mut|ref)[ \t]++|&|\*)*+(?P<chain>[^\W\d][\w$]*+(?:(?:\.|::)[^\W\d][\w$]*+)*+)"
    r"(?:<[^()\n]{0,80}>|\[[^()\n]{0,80}\])?!?[ \t]?[({]"
)


def _constructed(value: str) -> list[str]:
    """`Foo(…)`, `new a.Foo(…)`, `&Foo{…}`, `Foo::new(…)`, `NewFoo(…)`, `make_foo(…)`."""
    found = _CALL.match(value)
    if found is None:
        return []
    parts = re.split(r"\.|::", found["chain"])
    last = parts[-1]
    owner = next((part for part in reversed(parts[:-1]) if part[:1].isupper()), "")
    if owner and not last[:1].isupper():
        return [owner, last]
    if last.startswith("New") and last[3:4].isupper():
        return [last[3:], last]
    return [last] if last not in NOISE else []


def _annotated(written: str) -> list[str]:
    """The types that an annotation names, without the containers around them."""
    depth, end = 0, 0
    for character in written:
        depth += (character in "<[(") - (character in ">])")
        if depth < 0 or character in "={;\n" or (character == "," and not depth):
            break
        end += 1
    return [name for name in _WORD.findall(written[:end]) if name not in NOISE and name[:1].isupper()]
