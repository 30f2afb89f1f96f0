"""The text of a definition that is worth showing to a model: a signature, or an outline of members."""

from __future__ import annotations

import re
from collections.abc import Sequence

from monkeycode_lsp.symbols import quoting
from monkeycode_lsp.symbols.definition import Definition, first_of
from monkeycode_lsp.symbols.model import MAX_LINES, MAX_TEXT
from monkeycode_lsp.symbols.shapes import Shape
from monkeycode_lsp.symbols.walk import summary

SHORT_LINES, SHORT_TEXT = 8, 500
"""What is not longer is quoted whole."""

_CONSTRUCTORS = frozenset({"__init__", "constructor", "initialize", "__construct", "init"})
_ATTRIBUTE = re.compile(r"^[ \t]*((?:self\.|this\.|\$this->|@)\w+[ \t]*(?::[^=\n]+)?=(?!=)[^\n]*)", re.MULTILINE)
_PRIVATE = re.compile(r"(?:[^\n]{,80}\s)??(?:private|protected|fileprivate)\s|#")
_MAX_ATTRIBUTES = 16
_ITEMS_WIDTH = 90


def of_function(found: Definition, shape: Shape, source: bytes) -> str:
    """A short function whole, a longer one as its signature."""
    whole = _whole(found, shape, source)
    return whole if whole is not None else quoting.bounded(_signature(found, shape, source))


def of_value(found: Definition, shape: Shape, source: bytes) -> str:
    """A constant, alias or macro: as it is written, of a long one the beginning."""
    written = quoting.dedented(source, found.start, found.end).rstrip()
    if found.keyword:
        written = f"{found.keyword} {written}"
    if written.count("\n") >= SHORT_LINES or len(written) > SHORT_TEXT:
        written = _beginning(written)
    return _above(found, shape) + written


def _beginning(written: str) -> str:
    lines = written.split("\n")
    return "\n".join(
        quoting.one_line(line.rstrip(), 120) if not line[:1].isspace() else line[:120].rstrip() for line in lines[:SHORT_LINES]
    ) + ("\n..." if len(lines) > SHORT_LINES else "")


def of_class(found: Definition, inside: Sequence[Definition], shape: Shape, source: bytes, added: Sequence[str] = ()) -> str:
    """Header, fields, constructor and signatures of methods; `added`: lines of methods that stand elsewhere."""
    if not added:
        whole = _whole(found, shape, source)
        if whole is not None:
            return whole
    if source[found.head_end : found.head_end + 1] == b"(":  # a tuple struct: its fields are its header
        return quoting.bounded("\n".join([of_value(found, shape, source), *added]))
    doc = _docstring(found, source) if not shape.end else ""
    head = [*_above(found, shape).splitlines(), *_opened(found, shape, source)]
    if doc:
        head.append(f'{shape.indent}"""{doc}"""')
    tail = [*_closed(found, shape, source), *added]
    members = [(member, brief(member, shape, source)) for member in inside]
    return quoting.bounded("\n".join([*head, *_fitting(members, shape, head, tail), *tail]))


def _closed(found: Definition, shape: Shape, source: bytes) -> list[str]:
    """The last line of a class: `}`, or `} name;`."""
    if not shape.end or found.body is None:
        return []
    behind = quoting.one_line(quoting.text(source, found.body.end_byte, max(found.body.end_byte, found.end)), 80)
    return [shape.end + (f" {behind}" if behind not in {"", ";", shape.end} else behind.replace(shape.end, ""))]


def _fitting(members: Sequence[tuple[Definition, list[str]]], shape: Shape, head: list[str], tail: list[str]) -> list[str]:
    """As many members as the bounds allow: without the private ones where all are too many."""
    n_lines, n_text = MAX_LINES - len(head) - min(len(tail), MAX_LINES // 2), MAX_TEXT - sum(len(line) + 1 for line in head) - 200
    lines = _joined(members)
    if len(lines) > n_lines or sum(map(len, lines)) > n_text:
        lines = _joined([(member, text) for member, text in members if not _is_private(member, text)])
    taken: list[str] = []
    for line in lines:
        n_text -= len(line) + len(shape.indent) + 1
        if n_text < 0 or len(taken) >= n_lines - 1:
            taken.append(shape.comment + "..." if shape.end else "...")
            break
        taken.append(line)
    if not taken and not shape.end:
        taken.append("...")
    return [shape.indent + line for line in taken]


def _joined(members: Sequence[tuple[Definition, list[str]]]) -> list[str]:
    """Their lines; short items of an enum share a line."""
    lines: list[str] = []
    row = False
    for member, text in members:
        is_item = member.role == "item" and len(text) == 1 and not text[0].startswith("case ")
        if is_item and row and len(lines[-1]) + len(text[0]) < _ITEMS_WIDTH:
            lines[-1] += " " + text[0]
        else:
            lines.extend(text)
        row = is_item
    return lines


def _is_private(member: Definition, text: Sequence[str]) -> bool:
    name = member.names[0]
    return (name.startswith("_") and name not in _CONSTRUCTORS) or _PRIVATE.match(text[-1]) is not None


def brief(found: Definition, shape: Shape, source: bytes) -> list[str]:
    """What an outline says of a member, a line each."""
    if found.role in {"field", "item", "value"}:
        line = quoting.one_line(quoting.text(source, found.start, found.end), 120)
        behind = source[found.end : found.end + 8].lstrip()[:1].decode("ascii", errors="ignore")
        return [*found.leads, line + (behind if behind in {",", ";"} and not line.endswith((behind, "...")) else "")]
    header = quoting.one_line(_header(found, shape, source), 240)
    attributes = _attributes(found, source)
    if attributes:
        opened = f"{header} {{" if shape.end == "}" else header
        return [*found.leads, opened, *(shape.indent + line for line in attributes), *([shape.end] if shape.end else [])]
    if found.role != "function":
        return [*found.leads, header + shape.elided.replace(f"\n{shape.indent}", " ").replace("\n", " ")]
    end = "" if found.body is None else " ..." if header.endswith(("=", "=>", "->")) else shape.bodiless
    return [*found.leads, header + end]


def _attributes(found: Definition, source: bytes) -> list[str]:
    """What a constructor sets on the object."""
    if found.role != "function" or found.names[0] not in _CONSTRUCTORS or found.body is None:
        return []
    statements = _ATTRIBUTE.findall(quoting.text(source, found.body.start_byte, found.body.end_byte))
    return [_cut(statement.rstrip()) for statement in statements[:_MAX_ATTRIBUTES]]


def _cut(statement: str) -> str:
    return quoting.one_line(statement + (" ..." if statement.endswith(("(", "[", "{", ",")) else ""), 110)


def _whole(found: Definition, shape: Shape, source: bytes) -> str | None:
    """The definition as it is written, if it is short."""
    if found.end - found.start > 4 * SHORT_TEXT or source.count(b"\n", found.start, found.end) >= SHORT_LINES:
        return None
    written = quoting.dedented(source, found.start, found.end).rstrip()
    if len(written) > SHORT_TEXT:
        return None
    return _above(found, shape) + (f"{found.keyword} " if found.keyword else "") + written


def _above(found: Definition, shape: Shape) -> str:
    doc = f"{shape.comment}{found.doc}\n" if found.doc else ""
    return doc + "".join(f"{lead}\n" for lead in found.leads)


def _signature(found: Definition, shape: Shape, source: bytes) -> str:
    """Of a function whose body is too long to quote."""
    header = _above(found, shape) + _header(found, shape, source)
    if found.body is None:
        return header
    doc = _docstring(found, source) if not shape.end else ""
    if doc:
        return f'{header}\n{shape.indent}"""{doc}"""\n{shape.indent}...'
    return header + (shape.elided if shape.end != "}" else _elided(source[found.head_end : found.head_end + 2], header))


def _opened(found: Definition, shape: Shape, source: bytes) -> list[str]:
    """The header of a class, up to where its members begin."""
    header = _header(found, shape, source)
    if header.count("\n") >= SHORT_LINES or len(header) > SHORT_TEXT:
        header = quoting.one_line(header, SHORT_TEXT)
    braces = shape.end == "}" and found.body is not None and not header.endswith("{")
    return (header + (" {" if braces else "")).split("\n")


def first_line(found: Definition, shape: Shape, source: bytes) -> str:
    """The header of a class in one line."""
    return quoting.one_line("\n".join(_opened(found, shape, source)))


def _header(found: Definition, shape: Shape, source: bytes) -> str:
    """What stands before the body, without comments."""
    header = quoting.dedented(source, found.start, found.head_end).rstrip()
    if "\n" in header:
        marks = (shape.comment.strip(), "/*", "* ", "*/")
        first, *others = header.split("\n")
        header = "\n".join([first, *(line for line in others if not line.lstrip().startswith(marks))]).rstrip()
    return f"{found.keyword} {header}" if found.keyword else header


def _elided(opening: bytes, header: str) -> str:
    """A body that is not shown, in the form that the body has: a block or an expression."""
    if header.endswith(("=", "=>", "->")) and not opening.startswith(b"{"):
        return " ..."
    if opening == b"=>":
        return " => ..."
    return " = ..." if opening.startswith(b"=") else " { ... }"


def _docstring(found: Definition, source: bytes) -> str:
    """Of Python: the first line of the string that the body begins with."""
    first = first_of(found.body)
    if first is not None and first.type == "expression_statement":
        first = first_of(first)
    return (
        summary(quoting.text(source, first.start_byte, first.end_byte).lstrip("rRuUbBfF"))
        if first is not None and first.type == "string"
        else ""
    )
