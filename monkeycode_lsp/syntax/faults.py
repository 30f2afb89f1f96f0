"""How many parse errors a text has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from monkeycode_lsp.syntax import grammars

if TYPE_CHECKING:
    from tree_sitter import Node


def count(text: str, language: str, *, within_ms: float = grammars.WITHIN_MS) -> int | None:
    """Places of `text` that the grammar does not understand, and tokens that it misses; None: there is no tree."""
    tree = grammars.parse(text, language, within_ms=within_ms)
    return None if tree is None else sum(1 for _ in _faults(tree.root_node))


def around(text: str, at: int, language: str) -> tuple[int, int] | None:
    """How many there are, and how many of them do not touch the character `at` or the white space around it; None: there is no tree."""
    tree = grammars.parse(text, language)
    if tree is None:
        return None
    first, last = _n_bytes(text[:at].rstrip()), _n_bytes(text) - _n_bytes(text[at:].lstrip())
    found = list(_faults(tree.root_node))
    return len(found), sum(1 for node in found if node.end_byte < first or node.start_byte > last)


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
