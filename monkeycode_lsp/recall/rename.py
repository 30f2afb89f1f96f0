"""The same text with other names (pure).

Only names outside of strings are changed, and no two names become one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from monkeycode_lsp.recall.shape import KEYWORDS, TOKEN

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+|_+|\w")
_LEAST_PART = 2
"""Letters of a part that is changed inside of other names."""


class Renaming(msgspec.Struct, frozen=True):
    """One name for another, both ways."""

    names: dict[str, str]
    parts: dict[str, str]
    """Of compound names, in lower case: `user` in `get_user` and `UserList`.  Only those that change."""

    @property
    def is_identity(self) -> bool:
        return all(old == new for old, new in self.names.items())


def between(pairs: Iterable[tuple[str, str]]) -> Renaming | None:
    """The renaming that these pairs of names ask for; None if it is not one-to-one."""
    names: dict[str, str] = {}
    back: dict[str, str] = {}
    for old, new in pairs:
        if names.setdefault(old, new) != new or back.setdefault(new, old) != old:
            return None
    return Renaming(names, _parts(names))


def renamed(text: str, renaming: Renaming) -> str | None:
    """`text` with the other names, strings and keywords as they are; None if two names would become one."""
    if renaming.is_identity:
        return text
    others: dict[str, str] = {}

    def other(token: re.Match[str]) -> str:
        said = token[0]
        if token.lastgroup != "name" or said in KEYWORDS:
            return said
        if said not in others:
            others[said] = renaming.names.get(said) or _compound(said, renaming.parts)
        return others[said]

    changed = TOKEN.sub(other, text)
    return changed if len(set(others.values())) == len(others) else None


def names_in(text: str) -> set[str]:
    """Every name in `text`, outside of strings."""
    return {token[0] for token in TOKEN.finditer(text) if token.lastgroup == "name" and token[0] not in KEYWORDS}


def are_akin(old: str, new: str) -> bool:
    """Whether two names are the same, or have a word in common."""
    return old == new or not {part.lower() for part in _PART.findall(old)}.isdisjoint(
        part.lower() for part in _PART.findall(new) if len(part) >= _LEAST_PART
    )


def _parts(names: dict[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    contradicted: set[str] = set()
    for old, new in names.items():
        if old == new:
            continue
        olds, news = _PART.findall(old.lower() if old.isupper() else old), _PART.findall(new.lower() if new.isupper() else new)
        if len(olds) != len(news):
            olds, news = [old], [new]
        for one, other in zip(olds, news, strict=True):
            low, high = one.lower(), other.lower()
            if low == high or len(low) < _LEAST_PART or not low.isalpha():
                continue
            if found.setdefault(low, high) != high:
                contradicted.add(low)
    return {old: new for old, new in found.items() if old not in contradicted}


def _compound(name: str, parts: dict[str, str]) -> str:
    """The name with its parts changed, in the case that they have."""
    if not parts:
        return name
    return "".join(_in_case_of(part, _other(part.lower(), parts)) for part in _PART.findall(name))


def _other(part: str, parts: dict[str, str]) -> str:
    if part in parts:
        return parts[part]
    if part.endswith("s") and part[:-1] in parts:
        return parts[part[:-1]] + "s"
    if part + "s" in parts and parts[part + "s"].endswith("s"):
        return parts[part + "s"][:-1]
    return part


def _in_case_of(part: str, other: str) -> str:
    if other == part.lower():
        return part
    if part.islower():
        return other
    if part.isupper() and len(part) > 1:
        return other.upper()
    return other[:1].upper() + other[1:]
