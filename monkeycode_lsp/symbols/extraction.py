"""What a file defines: its symbols, each with the text worth quoting.  Read `walk` (finds) and `outline` (quotes)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from monkeycode_lsp.symbols import indentation, outline, plain, preparing, quoting, walk
from monkeycode_lsp.symbols.definition import Definition, last_row
from monkeycode_lsp.symbols.model import Symbol
from monkeycode_lsp.symbols.shapes import SHAPES, Shape
from monkeycode_lsp.syntax import grammars

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_SOURCE = 1_000_000
"""Characters that are looked at."""

MAX_SYMBOLS = 4_000
_WITHIN_MS, _WITHIN_US_A_CHARACTER, _MOST_MS = 50.0, 1.0, 400.0
"""Of processor time for the parser, four times what source takes or more; a text in which it finds no sense by then is read by its lines."""
_MAX_ADDED = 20
_LOST, _MAX_LOST = 20, 50
"""Bytes of a place, from which on it is worth another look; and how many of them."""


class _Placed(msgspec.Struct, frozen=True):
    """A definition in its container."""

    definition: Definition
    container: str
    is_member: bool
    """Whether that is a class."""
    header: str
    """That class's first line, and below it one step of the file's indentation."""
    inside: Sequence[Definition] = ()


def extract(text: str, language: str) -> list[Symbol]:
    """What `text` defines, in its order.  By the tree where there is a grammar, by the look of lines where not."""
    text = text[:MAX_SOURCE]
    readable, language = preparing.prepared(text, language)
    shape = SHAPES.get(language)
    tree = grammars.parse(readable, language, within_ms=_patience_ms(readable)) if shape is not None else None
    if shape is None or tree is None:
        return plain.extract(text, language)
    source = text.encode("utf-8", errors="replace")
    indent = indentation.step(text)
    shape = msgspec.structs.replace(shape, indent=indent, elided=shape.elided.replace(shape.indent, indent))
    placed = _placed(tree.root_node, shape, source)
    added = _added(placed, shape, source)
    symbols = [symbol for one in placed for symbol in _symbols(one, shape, source, added)]
    if tree.root_node.has_error:
        symbols.extend(_missed(tree.root_node, text, language, {symbol.name for symbol in symbols}))
    symbols.sort(key=lambda symbol: symbol.start_line)
    return symbols[:MAX_SYMBOLS]


def _patience_ms(text: str) -> float:
    return min(_MOST_MS, _WITHIN_MS + len(text) * _WITHIN_US_A_CHARACTER / 1e3)


def _missed(root: Node, text: str, language: str, known: set[str]) -> list[Symbol]:
    """What the look of lines tells of where the grammar is lost at the top of the file."""
    lost = [root] if root.type == "ERROR" else [child for child in root.children if child.is_error]
    rows = [(node.start_point.row, node.end_point.row) for node in lost if node.end_byte - node.start_byte > _LOST]
    if not rows:
        return []
    found = [symbol for symbol in plain.extract(text, language) if symbol.name not in known]
    return [symbol for symbol in found if any(first <= symbol.start_line <= last for first, last in rows[:_MAX_LOST])]


def _placed(root: Node, shape: Shape, source: bytes) -> list[_Placed]:
    """Every definition, class by class; never recursive."""
    placed: list[_Placed] = []
    waiting: list[tuple[Sequence[Definition], Definition | None]] = [(walk.members(root, shape, source), None)]
    while waiting and len(placed) < MAX_SYMBOLS:
        definitions, around = waiting.pop()
        container = around.names[0] if around is not None else ""
        is_member = around is not None and around.kind == "class"
        header = f"{outline.first_line(around, shape, source)}\n{shape.indent}" if around is not None and is_member else ""
        for found in definitions[: MAX_SYMBOLS - len(placed)]:
            inside: Sequence[Definition] = ()
            if found.role in {"class", "addition"} and found.body is not None:
                inside = walk.members(found.body, shape, source)
                waiting.append((inside, found))
            own = found.container
            placed.append(_Placed(found, own or container, is_member or bool(own), "" if own else header, inside))
    return placed


def _added(placed: Sequence[_Placed], shape: Shape, source: bytes) -> dict[str, Sequence[tuple[str, str]]]:
    """By class: names and signatures of methods that stand outside it: Go's receivers, Rust's `impl`, Swift's extensions."""
    added: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for one in placed:
        found = one.definition
        if found.role == "addition" and one.inside and len(added[found.names[0]]) < _MAX_ADDED:
            header = outline.brief(found, shape, source)[-1].removesuffix(shape.elided)
            briefs = [f"{shape.indent}{line}" for member in one.inside for line in outline.brief(member, shape, source)]
            added[found.names[0]].append(("", "\n".join([f"{header} {{", *briefs[:_MAX_ADDED], "}"])))
        elif found.container and found.role == "function" and len(added[found.container]) < _MAX_ADDED:
            added[found.container].append((found.names[0], "\n".join(outline.brief(found, shape, source))))
    return dict(added)


def _symbols(one: _Placed, shape: Shape, source: bytes, added: dict[str, Sequence[tuple[str, str]]]) -> list[Symbol]:
    found = one.definition
    if found.role in {"field", "item", "addition"} or (found.role == "value" and one.is_member):
        return []
    return [
        Symbol(
            name=name,
            kind="method" if found.role == "function" and one.is_member else found.kind,
            container=one.container,
            start_line=found.node.start_point.row,
            end_line=last_row(found.node),
            text=_text(one, shape, source, () if one.is_member else added.pop(name, ())),
            header=one.header,
        )
        for name in found.names
    ]


def _text(one: _Placed, shape: Shape, source: bytes, added: Sequence[tuple[str, str]]) -> str:
    found = one.definition
    if found.role == "class":
        inside = {member.names[0] for member in one.inside}
        return outline.of_class(
            found, one.inside, shape, source, [line for name, text in added if not name or name not in inside for line in text.split("\n")]
        )
    written = outline.of_function(found, shape, source) if found.role == "function" else outline.of_value(found, shape, source)
    return quoting.bounded("\n".join([written, *(text for _, text in added)]))
