"""The definitions that stand directly in a node, in the order of the source.

What stands around a definition (`export`, decorators, `#ifdef`, `try`) is looked through; bodies of
functions are not looked into.  Never recursive, and bounded in what it visits, whatever the tree.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from monkeycode_lsp.symbols import quoting
from monkeycode_lsp.symbols.definition import Definition, Role, define, last_row, name_of
from monkeycode_lsp.symbols.shapes import Shape

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_NODES = 20_000
"""Looked at below one container: a broken file may have all its tokens in one place."""

_ITEMS = frozenset(
    {"enumerator", "enum_constant", "property_identifier", "enum_assignment", "enum_member_declaration", "simple_enum_case", "enum_entry"}
)
_LEADS = frozenset({"decorator"})
_NAMELESS = {"secondary_constructor": "constructor", "init_declaration": "init", "indexer_declaration": "this"}
_KEYWORDS = re.compile(r"[\w \t]*")
_TAG = re.compile(r"</?\w+>")
_MARKS = " \t\r/*#!-<>'\""


class _Around(msgspec.Struct, frozen=True):
    """What stands around the children of a wrapper."""

    start: int
    end: int
    doc: str = ""
    leads: tuple[str, ...] = ()


class _Above:
    """What stands above the next definition.  The mutable state is all of it; it changes while one container's children pass."""

    def __init__(self) -> None:
        self.doc = ""
        self.leads: tuple[str, ...] = ()
        self._last_row = -2

    def comment(self, node: Node, source: bytes) -> None:
        first = node.start_point.row
        beside = first == self._last_row and not self.doc  # behind the statement above
        if not beside and (first != self._last_row + 1 or not self.doc):
            self.doc = summary(quoting.text(source, node.start_byte, node.end_byte))
        self._pass(node)

    def lead(self, node: Node, source: bytes) -> None:
        line = quoting.text(source, node.start_byte, node.end_byte).strip().partition("\n")[0].rstrip()
        self.leads = (*self.leads, quoting.one_line(line + (" ..." if line.endswith(("(", "[", "{", ",")) else ""), 100))[-6:]
        self._pass(node)

    def take(self, node: Node) -> tuple[str, tuple[str, ...]]:
        """Of the definition `node`, which ends what stands above."""
        doc, leads = (self.doc if node.start_point.row <= self._last_row + 1 else ""), self.leads
        self.doc, self.leads = "", ()
        self._pass(node)
        return doc, leads

    def _pass(self, node: Node) -> None:
        self._last_row = last_row(node)


def summary(comment: str) -> str:
    """The first line of a comment or docstring that says something."""
    for line in comment.split("\n", 12)[:12]:
        said = _TAG.sub("", line).strip(_MARKS)
        if any(character.isalnum() for character in said):
            return quoting.one_line(said, 120)
    return ""


def members(parent: Node, shape: Shape, source: bytes) -> list[Definition]:
    """What is defined directly in `parent`."""
    found: list[Definition] = []
    waiting: list[tuple[Node, _Around | None]] = [(parent, None)]
    left = MAX_NODES
    while waiting and left > 0:
        node, around = waiting.pop()
        children = node.named_children[:left]
        left -= len(children)
        known = [child.start_byte for child in children if _is_known(child.type, shape)] if around is not None else []
        keyword = _keyword(source, around.start, known[0]) if around is not None and len(known) > 1 else None
        above = _Above()
        for child in children:
            kind = child.type
            if kind in shape.comments:
                above.comment(child, source)
            elif kind in shape.leads or kind in _LEADS:
                above.lead(child, source)
            elif kind in shape.wrappers:
                waiting.append((child, _widened(child, above.take(child), around if keyword is None else None)))
            elif kind in shape.through:
                above.take(child)
                waiting.append((child, None))
            else:
                definition = _read(child, kind, shape, source)
                taken = above.take(child)
                if definition is not None:
                    found.append(_surrounded(definition, taken, around, source, keyword))
    found.sort(key=lambda definition: definition.node.start_byte)
    return found


def _is_known(kind: str, shape: Shape) -> bool:
    return (
        kind in shape.special
        or kind in shape.functions
        or kind in shape.classes
        or kind in shape.values
        or kind in shape.wrappers
        or kind in shape.through
    )


def _widened(wrapper: Node, above: tuple[str, tuple[str, ...]], around: _Around | None) -> _Around:
    doc, leads = above
    if around is None:
        return _Around(wrapper.start_byte, wrapper.end_byte, doc, leads)
    return _Around(around.start, around.end, around.doc or doc, around.leads + leads)


def _keyword(source: bytes, start: int, end: int) -> str:
    """What introduces several definitions: `const` of `const ( a = 1 …`."""
    found = _KEYWORDS.match(quoting.text(source, start, min(end, start + 40)))
    return found[0].strip() if found else ""


def _surrounded(
    definition: Definition, above: tuple[str, tuple[str, ...]], around: _Around | None, source: bytes, keyword: str | None
) -> Definition:
    doc, leads = above
    if around is None:
        return msgspec.structs.replace(definition, doc=doc, leads=leads) if doc or leads else definition
    if keyword is not None:
        return msgspec.structs.replace(definition, doc=doc, leads=leads, keyword=keyword)
    return msgspec.structs.replace(
        definition,
        start=_after_leads(definition.node, around.start, source) if leads else around.start,
        end=max(definition.end, around.end),
        head_end=definition.head_end if definition.body is not None else max(definition.end, around.end),
        doc=around.doc or doc,
        leads=around.leads + leads,
    )


def _after_leads(node: Node, start: int, source: bytes) -> int:
    """Where the text begins behind the decorators inside a wrapper."""
    last = node.prev_named_sibling
    if last is None or last.type not in _LEADS:
        return start
    end = last.end_byte
    rest = source[end : node.start_byte]
    return end + len(rest) - len(rest.lstrip())


def _read(node: Node, kind: str, shape: Shape, source: bytes) -> Definition | None:
    rule = shape.special.get(kind)
    if rule is not None:
        definition = rule(node, source)
        return definition if definition is not None and (all(definition.names) or definition.role == "field") else None
    if kind in shape.fields:
        role: Role = "item" if kind in _ITEMS else "field"
        return define(node, ("",), role, "constant")
    class_kind, value_kind = shape.classes.get(kind), shape.values.get(kind)
    if class_kind is None and value_kind is None and kind not in shape.functions:
        return None
    name = name_of(node.child_by_field_name("name"), source) or _NAMELESS.get(kind, "")
    if not name:
        return None
    if value_kind is not None:
        return define(node, (name,), "value", value_kind)
    body = node.child_by_field_name("body") or _body(node, shape)
    return define(node, (name,), "class" if class_kind else "function", class_kind or "function", body=body)


def _body(node: Node, shape: Shape) -> Node | None:
    last = node.named_child(node.named_child_count - 1) if shape.bodies and node.named_child_count else None
    return last if last is not None and last.type in shape.bodies else None
