"""The definitions that stand directly in a node, in the order of the source.

What stands around a definition (`export`, decorators, `#ifdef`, `try`) is looked through; bodies of
functions are not looked into.  Never recursive, and bounded in what it visits, whatever the tree.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

from monkeycode_lsp.symbols import quoting
from monkeycode_lsp.symbols.model import Kind
from monkeycode_lsp.symbols.shapes import Shape

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_NODES = 20_000
"""Children looked at in one container: a broken file may have all its tokens in one."""

Role = Literal["class", "function", "value", "field", "item", "addition"]
"""field, item: shown in the outline of what holds it; an item is short.  addition: more members for a class that stands elsewhere."""

_ITEMS = frozenset(
    {
        "enumerator",
        "enum_constant",
        "property_identifier",
        "enum_assignment",
        "enum_member_declaration",
        "simple_enum_case",
    }
)
_NAMELESS = {"secondary_constructor": "constructor", "init_declaration": "init", "indexer_declaration": "this"}
_WORD = re.compile(r"\w+")
_NAME = re.compile(r"[^\W\d][\w$!?=]*")


class Definition(msgspec.Struct, frozen=True):
    """What defines something, before its text is made."""

    role: Role
    kind: Kind
    names: tuple[str, ...]
    node: object
    """The node that defines, without what stands around it."""
    start: int
    end: int
    body: object = None
    """Node that has the members or the statements."""
    head_end: int = 0
    """Where the body begins; `end` where there is none."""
    container: str = ""
    """Where the definition itself says what it belongs to: `func (a *A) f()`."""
    doc: str = ""
    """First line of the comment above."""
    leads: tuple[str, ...] = ()
    """Decorators and attributes, a line each."""
    keyword: str = ""
    """What introduces it where it is one of several: `const`."""
    separator: str = ""
