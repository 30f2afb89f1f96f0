"""The settings as a Markdown table, for the README."""

from __future__ import annotations

from typing import Any

import msgspec

from monkeycode_lsp import config
from monkeycode_lsp.cli import schema


def table() -> str:
    """One row a setting: its name, default and meaning."""
    rows = ["| setting | default | meaning |", "|---|---|---|"]
    definitions = schema.describe()["$defs"]
    rows += _rows(config.Config, "", definitions)
    return "\n".join(rows) + "\n"


def _rows(struct: type[msgspec.Struct], path: str, definitions: dict[str, Any]) -> list[str]:
    rows: list[str] = []
    for name, field in config.fields(struct).items():
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            rows += _rows(field.type, f"{path}{name}.", definitions)
            continue
        described = definitions[struct.__name__]["properties"][name]
        rows.append(f"| `{path}{name}` | `{msgspec.json.encode(getattr(struct(), field.name)).decode()}` | {_meaning(described)} |")
        if name == "endpoints":
            rows += _rows(config.Endpoint, f"{path}endpoints[].", definitions)
    return rows


def _meaning(described: dict[str, Any]) -> str:
    text = " ".join(described.get("description", "").split())
    choices = described.get("enum")
    if choices and not all(choice in text for choice in choices):
        text = " \\| ".join(choices) + f". {text}".rstrip()
    return text.replace("|", "\\|") if "\\|" not in text else text
