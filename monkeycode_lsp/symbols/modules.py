"""An imported module as a receiver: which import it is, and what its files offer (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from monkeycode_lsp.symbols import quoting
from monkeycode_lsp.symbols.model import MAX_LINES, Import

_SEPARATOR = re.compile(r"(?:\.|::)\Z")
_MOST_HEADER = 8
"""Lines that one may go over."""
_MODULE = frozenset({"javascript", "lua"})
"""Groups of languages in which a module may be a value: what is its default, or has its name."""
_COMMENTS = ("#", "//", "--", "/*", "*", "@")
_HIDDEN = re.compile(r"(?:static|private|local|protected|fileprivate)\b")


def is_wanted(name: str) -> bool:
    """Whether a wanted name is a module, all of which is wanted: it has a sign at its end."""
    return _SEPARATOR.search(name) is not None


def imported_as(name: str, imported: Iterable[Import], group: str) -> Iterator[Import]:
    """What brings the module `name` (a sign at its end) into a file of such languages, as imports of just that module."""
    here = _SEPARATOR.sub("", name)
    for one in imported:
        sign = "::" if "::" in name or one.module.startswith("crate") else "."
        if here == one.alias or (here == one.module and not one.names and not one.level):
            # `import a.b` brings the name `a`, and the module that is imported is called `a.b`.
            if here == one.module or here != one.module.partition(sign)[0] or sign not in one.module:
                yield Import(one.module, level=one.level)
            continue
        for there, alias in one.names:
            if alias != here or there == "*":
                continue
            if there == "default" or group in _MODULE:
                yield Import(one.module)
            else:
                yield Import(f"{one.module}{sign}{there}" if one.module else there, level=one.level)


def outline(texts: Iterable[tuple[str, str]], group: str) -> str:
    """The public ones of these definitions (name, text), a line each; empty: there are none."""
    lines = [header for name, text in texts if _is_public(name, group) and (header := _header(text, group))]
    return quoting.bounded("\n".join(list(dict.fromkeys(lines))[:MAX_LINES]))


def _is_public(name: str, group: str) -> bool:
    return name[:1].isupper() if group == "go" else not name.startswith("_")


def _header(text: str, group: str) -> str:
    """How one is used: up to its body, in one line; empty: only its own file can."""
    lines = text.split("\n")
    first = next((at for at, line in enumerate(lines) if line.strip() and not line.lstrip().startswith(_COMMENTS)), None)
    if first is None or _HIDDEN.match(lines[first]) or (group == "rust" and not lines[first].startswith("pub")):
        return ""
    taken, depth = [], 0
    for line in lines[first : first + _MOST_HEADER]:
        taken.append(line)
        depth += sum(line.count(sign) for sign in "([") - sum(line.count(sign) for sign in ")]")
        if depth <= 0:
            break
    header = quoting.one_line("\n".join(taken))
    for sign in ("{ ... }", "{", "=>"):
        header = header.removesuffix(sign).rstrip()
    return header
