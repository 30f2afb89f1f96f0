"""The settings' JSON Schema, described by the strings under the fields of `config/tree.py`."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import Any

import msgspec

from monkeycode_lsp import config
from monkeycode_lsp.config import tree

TITLE = "MonkeyCode"


def describe() -> dict[str, Any]:
    """The schema, with every description."""
    schema = msgspec.json.schema(config.Config)
    for struct, field, text in _descriptions():
        properties = schema["$defs"][struct]["properties"]
        for name, info in config.fields(getattr(config, struct)).items():
            if info.name == field:
                properties[name]["description"] = text
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": TITLE, **schema}


def _descriptions() -> Iterator[tuple[str, str, str]]:
    """Struct, field and the string that stands under the field."""
    for node in ast.parse(inspect.getsource(tree)).body:
        if isinstance(node, ast.ClassDef):
            for field, under in zip(node.body, node.body[1:], strict=False):
                text = under.value.value if isinstance(under, ast.Expr) and isinstance(under.value, ast.Constant) else None
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, str):
                    yield node.name, field.target.id, inspect.cleandoc(text)
