"""What a file imports, read from its text line by line: it needs no grammar, and an unfinished file does not disturb it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from monkeycode_lsp.symbols import import_packages, import_scripts
from monkeycode_lsp.symbols.model import Import

MAX_SOURCE = 200_000
"""Characters that are looked at: imports stand at the top."""

MAX_IMPORTS = 300
_Reader = Callable[[str], Iterator[tuple[int, Import]]]
"""Gives each import with the offset at which it begins."""


def read(text: str, language: str) -> list[Import]:
    """What `text` imports, in its order; empty for a language that it does not know."""
    reader = _READERS.get(language)
    if reader is None:
        return []
    text = text[:MAX_SOURCE]
    found: list[Import] = []
    line, counted = 0, 0
    for offset, imported in reader(text):
        line += text.count("\n", counted, offset) if offset >= counted else 0
        counted = max(offset, counted)
        found.append(Import(imported.module, imported.names, imported.alias, imported.level, line))
        if len(found) == MAX_IMPORTS:
            break
    return found


_READERS: Mapping[str, _Reader] = {
    "python": import_scripts.python,
    "javascript": import_scripts.javascript,
    "javascriptreact": import_scripts.javascript,
    "typescript": import_scripts.javascript,
    "typescriptreact": import_scripts.javascript,
    "vue": import_scripts.javascript,
    "svelte": import_scripts.javascript,
    "go": import_packages.go,
    "rust": import_packages.rust,
    "java": import_packages.java,
    "kotlin": import_packages.java,
    "scala": import_packages.scala,
    "c": import_packages.c,
    "cpp": import_packages.c,
    "csharp": import_packages.csharp,
    "ruby": import_scripts.ruby,
    "php": import_packages.php,
    "swift": import_packages.swift,
    "lua": import_scripts.lua,
    "bash": import_scripts.bash,
    "shellscript": import_scripts.bash,
}
