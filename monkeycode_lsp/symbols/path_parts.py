"""Paths put together from parts."""

from __future__ import annotations

from collections.abc import Iterable

from monkeycode_lsp.symbols.model import Import

MAX_NAMES = 6
"""Imported names of one import that are looked for as files."""


def joined(folders: Iterable[str], *parts: str) -> str:
    """A path; empty where `..` leads out of the workspace."""
    result: list[str] = []
    for part in [*folders, *(piece for whole in parts for piece in whole.split("/"))]:
        if part == "..":
            if not result:
                return ""
            result.pop()
        elif part not in {"", "."}:
            result.append(part)
    return "/".join(result)


def module_names(imported: Import) -> list[str]:
    """Those that may be modules themselves: a module's name is in lower case."""
    return [name for name, _ in imported.names if name.isidentifier() and name == name.lower()][:MAX_NAMES]
