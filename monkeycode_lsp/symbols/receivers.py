"""Of which type is what the cursor completes a member of?  By what the text says of it, for the plain cases.

`x = Foo(…)`, `x: Foo`, `Foo x`, `x := &Foo{…}`, a parameter, an attribute of `self`: then `Foo`, whose
outline is what a model needs at `x.`.  Where only a call is known, the called function: its signature tells.
"""

from __future__ import annotations

import re
from functools import lru_cache

from monkeycode_lsp.symbols.words import NOISE

MAX_TYPES = 4
_MAX_ABOVE = 12_000
_MAX_TYPE = 160
_CHAIN = re.compile(r"([^\W\d][\w$]*)((?:\(\))?(?:\.|::|->|\?\.)(?:[^\W\d][\w$]*(?:\(\))?(?:\.|::|->|\?\.))*)[\w$]*\Z")
_SEPARATOR = re.compile(r"\.|::|->|\?\.|\(\)")
_WORD = re.compile(r"[^\W\d][\w$]*+")
_SELF = frozenset({"self", "this", "cls", "super", "Self", "base"})
_HEADER = re.compile(
    r"(?m)^[ \t]*+(?:[\w@]++[ \t]++){0,5}?(?:class|struct|interface|trait|object|protocol|record|enum)[ \t]++[^\W\d]\w*+(?P<bases>[^\n{]{0,200})"
    r"|^[ \t]*+impl\b(?:<[^>\n]*+>)?[ \t]++(?P<impl>[^\n{]{1,200})"
    r"|^func[ \t]++\([ \t]*+\w++[ \t]++\*?(?P<receiver>\w++)"
)
_BASE_NOISE = frozenset({"extends", "implements", "with", "for", "where", "metaclass", "object", "permits"})


def types(before: str, after: str, language: str) -> list[str]:
    """Likely types of the receiver at the cursor, most likely first; empty if the cursor does not complete a member."""
    del after, language  # what a name is bound to stands above; the forms of the languages do not contradict each other
    chain = _CHAIN.search(before[-300:])
    if chain is None:
        return []
    root = chain[1]
    parts = [part for part in _SEPARATOR.split(chain[2]) if part]
    above = before[-_MAX_ABOVE:]
    if root in _SELF:
        found = _of_name(above, parts[-1]) if parts else _bases(above)
    else:
        found = _of_name(above, parts[-1] if parts else root)
        if not parts and root[:1].isupper():
            found = [root, *found]  # a class itself
        elif parts and not found:
            found = _of_name(above, root)
    return list(dict.fromkeys(found))[:MAX_TYPES]


def _bases(above: str) -> list[str]:
    """What the class around the cursor is made from: it is what is not seen here."""
    last = None
    for last in _HEADER.finditer(above):  # noqa: B007 - the last of them is wanted
        pass
    if last is None:
        return []
    written = last["bases"] or last["impl"] or last["receiver"] or ""
    return [name for name in _WORD.findall(written) if name not in NOISE and name not in _BASE_NOISE and name[:1].isupper()]


def _of_name(above: str, name: str) -> list[str]:
    """Of the binding nearest above the cursor."""
    assigned, typed, before_name = _forms(name)
    best: tuple[int, list[str]] = (-1, [])
    for form, read in ((assigned, _constructed), (typed, _annotated), (before_name, _annotated)):
        for found in form.finditer(above):
            names = read(found["of"])
            if names and found.start() > best[0]:
                best = (found.start(), names)
    return best[1]


@lru_cache(maxsize=256)
def _forms(name: str) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """`name = …`, `name: T` (or `name T` of Go), `T name` (of Java, C#, C++)."""
    escaped = re.escape(name)
    own = rf"(?<![\w$]){escaped}"
    assigned = rf"{own}[ \t]*+(?::=|=(?!=))[ \t]*+(?P<of>[^\n;]{{1,{_MAX_TYPE}}})|(?P<with>)(?!)"
    typed = rf"{own}\??(?:[ \t]*+:[ \t]*+|[ \t]++(?=[*\[\]&]*+[A-Za-z_][\w.]*+[ \t]*+[,)\n{{`]))(?P<of>[^=\n;){{]{{1,{_MAX_TYPE}}})"
    before_name = rf"(?P<of>[A-Z][\w.]*+(?:<[^;\n(){{]{{0,80}}>)?(?:\[\])?)[ \t*&]++{escaped}(?=[ \t]*+[=;,):])"
    return re.compile(assigned), re.compile(typed), re.compile(before_name)


_CALL = re.compile(
    r"(?:(?:await|new|try|return|&|\*|mut|ref)[ \t]*+)*+(?P<chain>[^\W\d][\w$]*+(?:(?:\.|::)[^\W\d][\w$]*+)*+)(?:<[^()\n]{0,80}>|\[[^()\n]{0,80}\])?!?(?P<opens>[({])"
)
_MAKERS = ("new", "default", "from", "create", "build", "with", "of", "parse", "open", "connect", "get_instance", "getInstance", "shared")


def _constructed(value: str) -> list[str]:
    """`Foo(…)`, `new a.Foo(…)`, `&Foo{…}`, `Foo::new(…)`, `NewFoo(…)`, `make_foo(…)`."""
    found = _CALL.match(value)
    if found is None:
        return []
    parts = re.split(r"\.|::", found["chain"])
    owner = next((part for part in reversed(parts[:-1]) if part[:1].isupper()), "")
    last = parts[-1]
    if owner and (last.startswith(_MAKERS) or not last[:1].isupper()):
        return [owner, last]
    if last.startswith("New") and last[3:4].isupper():
        return [last[3:], last]
    return [last] if last not in NOISE else []


def _annotated(written: str) -> list[str]:
    """The types that an annotation names, without the containers around them."""
    depth = 0
    end = len(written)
    for offset, character in enumerate(written):
        depth += (character in "<[(") - (character in ">])")
        if depth < 0 or (character == "," and not depth):
            end = offset
            break
    return [name for name in _WORD.findall(written[:end]) if name not in NOISE and name[:1].isupper()]
