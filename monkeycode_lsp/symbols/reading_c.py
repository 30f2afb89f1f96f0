"""What nodes of C and C++ define: names stand inside declarators.  Rules as in `reading`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from monkeycode_lsp.symbols.definition import Definition, define, first_of, last_name_of, name_of, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_MAX_DEPTH = 12
"""Of declarators around a name: `int *(*f[3])(void)` has four."""


def function(node: Node, source: bytes) -> Definition | None:
    return _declared(node, node.child_by_field_name("declarator"), source, body=node.child_by_field_name("body"))


def declaration(node: Node, source: bytes) -> Definition | None:
    """A prototype, a variable, or `struct S { … } s;`."""
    kind = node.child_by_field_name("type")
    if kind is not None and kind.type.endswith("_specifier") and kind.child_by_field_name("body") is not None:
        return class_(kind, source)
    return _declared(node, node.child_by_field_name("declarator"), source)


def field(node: Node, source: bytes) -> Definition | None:
    """A member: a method's prototype, a nested class, or data."""
    found = declaration(node, source)
    return found if found is not None and found.role != "value" else define(node, found.names if found else ("",), "field", "constant")


def class_(node: Node, source: bytes) -> Definition | None:
    """A struct, union, enum or class with its members; naming one defines nothing."""
    body, name = node.child_by_field_name("body"), node.child_by_field_name("name")
    if body is None:
        return None
    if name is None:  # an enum without a name: its members are what it defines
        names = tuple(name_of(child, source) for child in body.named_children[:64] if child.type == "enumerator")
        return define(node, names, "value", "constant") if names else None
    called = last_name_of(name, source) if name.type == "qualified_identifier" else name_of(name, source)
    found = define(node, (called,), "class", "class", body=body)
    ends = source.startswith(b";", node.end_byte)
    return msgspec.structs.replace(found, end=node.end_byte + 1) if ends else found


def typedef(node: Node, source: bytes) -> Definition | None:
    kind, declarator = node.child_by_field_name("type"), node.child_by_field_name("declarator")
    name, _, _ = _name(declarator, source)
    body = kind.child_by_field_name("body") if kind is not None else None
    return define(node, (name,), "class", "class", body=body) if body is not None else define(node, (name,), "value", "type")


def _declared(node: Node, declarator: Node | None, source: bytes, body: Node | None = None) -> Definition | None:
    name, container, calls = _name(declarator, source)
    if not name:
        return None
    if calls or body is not None:
        return define(node, (name,), "function", "method" if container else "function", body=body, container=container)
    return define(node, (name,), "value", "constant")


def _name(declarator: Node | None, source: bytes) -> tuple[str, str, bool]:
    """Name, what it is qualified with, and whether it is a function's."""
    container, calls, node = "", False, declarator
    for _ in range(_MAX_DEPTH):
        if node is None:
            break
        if node.type == "function_declarator":
            calls = True
        elif node.type == "parenthesized_declarator":
            calls = False  # a pointer to a function
        if node.type == "qualified_identifier":
            container = name_of(node.child_by_field_name("scope"), source) or container
            node = node.child_by_field_name("name")
        elif node.type.endswith("_declarator"):
            node = node.child_by_field_name("declarator") or first_of(node)
        elif node.type in {"operator_name", "destructor_name"}:
            return text_of(node, source), container, calls
        else:
            return name_of(node, source), container, calls
    return "", container, calls
