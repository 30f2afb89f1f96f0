"""What a node defines, before its text is made."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

from monkeycode_lsp.symbols.model import Kind

if TYPE_CHECKING:
    from tree_sitter import Node

Role = Literal["class", "function", "value", "field", "item", "addition"]
"""class: has members.  field, item: only an outline shows it; an item is short.  addition: members for a class that stands elsewhere."""

_NAME = re.compile(r"[^\W\d][\w$]*[?!=]?")
_MAX_NAME = 200


class Definition(msgspec.Struct, frozen=True):
    """One definition (or several of one line: `var a, b int`), where it stands and what surrounds it."""

    role: Role
    kind: Kind
    names: tuple[str, ...]
    node: Node
    """What defines, without what stands around it."""
    start: int
    """Where its text begins; with `export` or `template <…>` before it."""
    end: int
    body: Node | None = None
    """What has its members or statements."""
    head_end: int = 0
    """Where its body begins; `end` where there is none."""
    container: str = ""
    """What it says itself that it belongs to, as `func (a *A) f()` does."""
    doc: str = ""
    """The first line of the comment above."""
    leads: tuple[str, ...] = ()
    """Decorators and attributes, a line each."""
    keyword: str = ""
    """What introduces it where it is one of several: `const`."""


def define(node: Node, names: tuple[str, ...], role: Role, kind: Kind, *, body: Node | None = None, container: str = "") -> Definition:
    return Definition(
        role=role,
        kind=kind,
        names=names,
        node=node,
        start=node.start_byte,
        end=node.end_byte,
        body=body,
        head_end=body.start_byte if body is not None else node.end_byte,
        container=container,
    )


def first_of(node: Node | None) -> Node | None:
    """The first child that is more than a token."""
    return node.named_children[0] if node is not None and node.named_child_count else None


def text_of(node: Node, source: bytes) -> str:
    """The beginning of what `node` covers, as long as a name may be."""
    return source[node.start_byte : min(node.end_byte, node.start_byte + _MAX_NAME)].decode("utf-8", errors="ignore")


def name_of(node: Node | None, source: bytes) -> str:
    """The identifier that `node` begins with; empty: none."""
    if node is None:
        return ""
    found = _NAME.search(text_of(node, source))
    return found[0] if found else ""


def last_name_of(node: Node | None, source: bytes) -> str:
    """The identifier that `node` ends with: `b` of `a.b`."""
    found = _NAME.findall(text_of(node, source)) if node is not None else []
    return found[-1] if found else ""


def last_row(node: Node) -> int:
    """The last row that `node` has text on; some grammars give a node its line end too."""
    end = node.end_point
    return end.row if end.column or end.row == node.start_point.row else end.row - 1
