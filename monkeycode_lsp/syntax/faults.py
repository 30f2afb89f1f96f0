"""How many parse errors a text has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from monkeycode_lsp.syntax import grammars

if TYPE_CHECKING:
    from tree_sitter import Node


class Ends(msgspec.Struct, frozen=True):
    """Where a text was cut out of a longer one: a fault that touches such an end says nothing."""

    start: bool = False
    end: bool = False
    counts_from: int = 0
    """A fault that touches the end and begins before that character counts nevertheless."""


WHOLE = Ends()


def count(text: str, language: str, *, cut: Ends = WHOLE, within_ms: float = grammars.WITHIN_MS) -> int | None:
    """Places of `text` that the grammar does not understand, and tokens that it misses; None: there is no tree."""
    found = _found(text, language, cut, within_ms)
    return None if found is None else len(found)


class Around(msgspec.Struct, frozen=True):
    """The faults of a text, seen from a place in it."""

    n: int
    n_elsewhere: int
    """Of those, the ones that touch neither the place nor the white space around it."""
    n_above: int
    """The ones that touch it, and begin above its line."""


def around(text: str, at: int, language: str, *, cut: Ends = WHOLE) -> Around | None:
    """Seen from the character `at`; None: there is no tree."""
    found = _found(text, language, cut, grammars.WITHIN_MS)
    if found is None:
        return None
    first, last = _n_bytes(text[:at].rstrip()), _n_bytes(text) - _n_bytes(text[at:].lstrip())
    line = _n_bytes(text[: text.rfind("\n", 0, at) + 1])
    touching = [node for node in found if node.end_byte >= first and node.start_byte <= last]
    return Around(len(found), len(found) - len(touching), sum(1 for node in touching if node.start_byte < line))


def _found(text: str, language: str, cut: Ends, within_ms: float) -> list[Node] | None:
    tree = grammars.parse(text, language, within_ms=within_ms)
    if tree is None:
        return None
    first = _n_bytes(text[: len(text) - len(text.lstrip())]) if cut.start else -1
    last = _n_bytes(text.rstrip()) if cut.end else _n_bytes(text) + 1
    begun = _n_bytes(text[: cut.counts_from]) if cut.counts_from else 0
    return [node for node in _faults(tree.root_node) if node.start_byte > first and (node.end_byte < last or node.start_byte < begun)]


def _n_bytes(text: str) -> int:
    return len(text.encode("utf-8", errors="replace"))


def _faults(root: Node) -> Iterator[Node]:
    """Looks only where there is one: the rest of a large tree costs nothing."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.is_error or node.is_missing:
            yield node
        elif node.has_error:
            waiting.extend(node.children)
