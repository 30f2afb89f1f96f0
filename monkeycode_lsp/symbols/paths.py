"""Where in the workspace an imported module may be, most likely first.

A candidate is a relative path with `/`:

    a/b/c.py    exactly this file
    */b/c.py    this file below any folder, or at the top
    a/b/        every file directly in this folder
    */b/        every file directly in a folder of that name, at any depth

Whoever holds the list of files looks candidates up (`fits` says what fits); nothing here touches a disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from monkeycode_lsp.symbols import path_packages, path_scripts
from monkeycode_lsp.symbols.model import Import

MAX_CANDIDATES = 40
_MAX_DEPTH = 64
"""Folders of a path that are looked at."""


def resolve(imported: Import, path: str, language: str) -> list[str]:
    """Candidates for what `path` imports; empty where it is certainly not in the workspace (the standard library)."""
    resolver = _RESOLVERS.get(language)
    if resolver is None or (not imported.module and not imported.level):
        return []
    candidates: dict[str, None] = {}
    for candidate in resolver(imported, _folders(path)[:-1][-_MAX_DEPTH:], path):
        if candidate and candidate not in {"*/", "/"} and candidate != path:
            candidates[candidate] = None
        if len(candidates) == MAX_CANDIDATES:
            break
    return list(candidates)


def fits(candidate: str, path: str) -> bool:
    """Whether `path` is such a place."""
    tail = candidate.removeprefix("*/")
    if tail.endswith("/"):
        folder = path[: path.rfind("/") + 1]
        return folder == tail or (candidate != tail and folder.endswith("/" + tail))
    return path == tail or (candidate != tail and path.endswith("/" + tail))


def _folders(path: str) -> list[str]:
    return [part for part in path.replace("\\", "/").split("/") if part not in {"", "."}]


_Resolver = Callable[[Import, list[str], str], Iterator[str]]
_RESOLVERS: Mapping[str, _Resolver] = {
    "python": path_scripts.python,
    "javascript": path_scripts.javascript,
    "javascriptreact": path_scripts.javascript,
    "typescript": path_scripts.javascript,
    "typescriptreact": path_scripts.javascript,
    "vue": path_scripts.javascript,
    "svelte": path_scripts.javascript,
    "go": path_packages.go,
    "rust": path_packages.rust,
    "java": path_packages.java,
    "kotlin": path_packages.java,
    "scala": path_packages.java,
    "c": path_packages.c,
    "cpp": path_packages.c,
    "csharp": path_packages.csharp,
    "ruby": path_scripts.ruby,
    "php": path_packages.php,
    "swift": path_packages.swift,
    "lua": path_scripts.lua,
    "bash": path_scripts.bash,
    "shellscript": path_scripts.bash,
}
