"""What nodes define whose form is particular to a language.  Each rule: (node, source) → definition, or None for what defines nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from monkeycode_lsp.symbols.definition import Definition, define, first_of, last_name_of, name_of, text_of
from monkeycode_lsp.symbols.model import Kind

if TYPE_CHECKING:
    from tree_sitter import Node

Rule = Callable[["Node", bytes], Definition | None]

_FUNCTION_VALUES = frozenset({"arrow_function", "function_expression", "function", "generator_function", "function_definition"})
_CLASS_VALUES = frozenset({"class"})
_NO_CONTAINER = frozenset({"exports", "module", "prototype", "this", "self", "window", "globalThis"})


def assignment(node: Node, source: bytes) -> Definition | None:
    """`X = 1` of Python: a plain name, never `a.b` or `a[0]`."""
    left = node.child_by_field_name("left")
    if left is None or left.type != "identifier":
        return None
    annotation = node.child_by_field_name("type")
    kind: Kind = "type" if annotation is not None and text_of(annotation, source).endswith("TypeAlias") else "constant"
    return define(node, (name_of(left, source),), "value", kind)


def type_statement(node: Node, source: bytes) -> Definition | None:
    """`type X[T] = …` of Python; `typealias X = …` of Kotlin."""
    left = node.child_by_field_name("left") or node.child_by_field_name("type")
    return define(node, (name_of(left, source),), "value", "type")


def constant_assignment(node: Node, source: bytes) -> Definition | None:
    """`X = 1` of Ruby."""
    left = node.child_by_field_name("left")
    if left is None or left.type != "constant":
        return None
    return define(node, (name_of(left, source),), "value", "constant")


def attribute_call(node: Node, source: bytes) -> Definition | None:
    """`attr_reader :x` of Ruby, which an outline shows, and `include M`."""
    method = name_of(node.child_by_field_name("method"), source)
    shown = method.startswith("attr_") or method in {"include", "extend", "belongs_to", "has_many", "has_one", "scope"}
    return define(node, (method,), "field", "constant") if shown else None


def variable(node: Node, source: bytes) -> Definition | None:
    """`x = …` of a JavaScript declaration or field: a function, a class or a value."""
    name = node.child_by_field_name("name") or node.child_by_field_name("property")
    if name is None or name.type.endswith("_pattern"):
        return None
    return _valued(node, name_of(name, source) or text_of(name, source), node.child_by_field_name("value"))


def field(node: Node, source: bytes) -> Definition | None:
    """A JavaScript class field: a method where its value is a function."""
    found = variable(node, source)
    if found is None or found.role == "value":
        return define(node, found.names if found else ("",), "field", "constant")
    return found


def _valued(node: Node, name: str, value: Node | None) -> Definition:
    if value is not None and value.type in _FUNCTION_VALUES:
        return define(node, (name,), "function", "function", body=value.child_by_field_name("body"))
    if value is not None and value.type in _CLASS_VALUES:
        return define(node, (name,), "class", "class", body=value.child_by_field_name("body"))
    return define(node, (name,), "value", "constant")


def member_assignment(node: Node, source: bytes) -> Definition | None:
    """`exports.f = function …`, `A.prototype.f = …` of JavaScript; other assignments define nothing."""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if left is None or left.type != "member_expression":
        return None
    if right is not None and right.type == "object":  # `module.exports = { f() { … } }`
        return define(node, (_owner(left, source) or "exports",), "addition", "module", body=right)
    found = _valued(node, last_name_of(left, source), right)
    if found.role == "value":
        return None
    return msgspec.structs.replace(found, container=_owner(left.child_by_field_name("object"), source))


def _owner(node: Node | None, source: bytes) -> str:
    """`A` of `A.prototype`; empty for `module.exports` and the like."""
    parts = [part for part in text_of(node, source).split(".") if part not in _NO_CONTAINER] if node is not None else []
    return parts[-1] if parts and parts[-1].isidentifier() else ""


def pair(node: Node, source: bytes) -> Definition | None:
    """`f: function …` of an exported JavaScript object."""
    found = _valued(node, name_of(node.child_by_field_name("key"), source), node.child_by_field_name("value"))
    return found if found.role == "function" else None


def go_type(node: Node, source: bytes) -> Definition | None:
    name, kind = node.child_by_field_name("name"), node.child_by_field_name("type")
    names = (name_of(name, source),)
    if kind is None or kind.type not in {"struct_type", "interface_type"}:
        return define(node, names, "value", "type")
    body = kind if kind.type == "interface_type" else next((child for child in kind.named_children if child.type.endswith("_list")), None)
    found = define(node, names, "class", "class", body=body)
    opener = source.find(b"{", kind.start_byte, kind.end_byte)
    return msgspec.structs.replace(found, head_end=opener) if opener > 0 else found


def go_values(node: Node, source: bytes) -> Definition | None:
    """`a, b = 1, 2` of `const` and `var`."""
    names = tuple(name_of(name, source) for name in node.children_by_field_name("name"))
    return define(node, names, "value", "constant")


def go_method(node: Node, source: bytes) -> Definition | None:
    receiver = node.child_by_field_name("receiver")
    inside = text_of(receiver, source).partition("[")[0] if receiver is not None else ""
    words = inside.strip("() ").replace("*", " ").split()
    return define(
        node,
        (name_of(node.child_by_field_name("name"), source),),
        "function",
        "method",
        body=node.child_by_field_name("body"),
        container=words[-1] if words else "",
    )


def rust_impl(node: Node, source: bytes) -> Definition | None:
    kind = node.child_by_field_name("type")
    target = text_of(kind, source).partition("<")[0].rpartition("::")[2].strip("&' ") if kind is not None else ""
    return define(node, (target,), "addition", "class", body=node.child_by_field_name("body"))


def rust_module(node: Node, source: bytes) -> Definition | None:
    """`mod x { … }`; `mod x;` defines nothing here."""
    body = node.child_by_field_name("body")
    return define(node, (name_of(node.child_by_field_name("name"), source),), "class", "module", body=body) if body is not None else None


def swift_class(node: Node, source: bytes) -> Definition | None:
    """A class, struct, enum or actor; an extension adds to one."""
    name = node.child_by_field_name("name")
    extends = name is not None and name.type == "user_type"
    return define(node, (last_name_of(name, source),), "addition" if extends else "class", "class", body=node.child_by_field_name("body"))


def patterned(node: Node, source: bytes) -> Definition | None:
    """`val x: T = …` of Kotlin, Swift, Scala."""
    name = node.child_by_field_name("name") or node.child_by_field_name("pattern")
    if name is None:
        name = next((child for child in node.named_children if child.type == "variable_declaration"), None)
    return define(node, (name_of(name, source).strip("="),), "value", "constant")


def lua_function(node: Node, source: bytes) -> Definition | None:
    """`function f()`, `function M.f()`, `function M:f()`."""
    return _lua_named(node, node.child_by_field_name("name"), source, node.child_by_field_name("body"))


def lua_assignment(node: Node, source: bytes) -> Definition | None:
    """`X = 1`, `M.f = function() … end`."""
    sides = node.named_children
    target, value = (first_of(sides[0]), first_of(sides[-1])) if len(sides) > 1 else (None, None)
    if target is None or value is None:
        return None
    if value.type == "function_definition":
        return _lua_named(node, target, source, value.child_by_field_name("body"))
    return define(node, (name_of(target, source),), "value", "constant") if target.type == "identifier" else None


def _lua_named(node: Node, name: Node | None, source: bytes, body: Node | None) -> Definition:
    owner, _, last = (text_of(name, source) if name is not None else "").replace(":", ".").rpartition(".")
    return define(node, (last,), "function", "method" if owner else "function", body=body, container=owner.rpartition(".")[2])


def php_constant(node: Node, source: bytes) -> Definition | None:
    return define(node, (name_of(first_of(node), source),), "value", "constant")


def bash_variable(node: Node, source: bytes) -> Definition | None:
    return define(node, (name_of(node.child_by_field_name("name"), source),), "value", "constant")
