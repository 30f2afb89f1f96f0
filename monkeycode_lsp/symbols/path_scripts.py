"""Where modules of Python, JavaScript, Ruby, Lua and Bash may be.  Each resolver: (import, folders of the importing file, its path)."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from monkeycode_lsp.symbols.model import Import
from monkeycode_lsp.symbols.path_parts import joined, module_names

_MAX_ANCESTORS = 4


def _roots(folders: list[str], *, nearest_first: bool) -> list[list[str]]:
    """Folders that modules may be named from: the file's own, those above it, the top, and `src` in them."""
    above = [folders[:depth] for depth in range(len(folders), max(0, len(folders) - _MAX_ANCESTORS), -1)]
    roots = [*above, []] if nearest_first else [[], ["src"], *above]
    return [*roots, ["src"]] if nearest_first else roots


def python(imported: Import, folders: list[str], _path: str) -> Iterator[str]:
    parts = [part for part in imported.module.split(".") if part]
    names = module_names(imported)
    if imported.level:
        if imported.level - 1 <= len(folders):
            yield from _modules(folders[: len(folders) - imported.level + 1], parts, names)
        return
    if not parts or parts[0] in sys.stdlib_module_names:
        return
    if parts[0] in folders:  # the package that the file itself is in
        yield from _modules(folders[: folders.index(parts[0])], parts, names)
    else:
        for root in _roots(folders, nearest_first=len(parts) == 1):
            yield from _modules(root, parts, names)
    if len(parts) > 1:
        yield from _modules(["*"], parts, names)


def _modules(root: list[str], parts: list[str], names: list[str]) -> Iterator[str]:
    """A module, a package, and what may be modules of the package."""
    if parts:
        yield joined(root, *parts) + ".py"
    yield joined(root, *parts, "__init__.py")
    for name in names:
        yield joined(root, *parts, name + ".py")
    if parts:
        yield joined(root, *parts) + ".pyi"


_SCRIPTS = (".ts", ".tsx", ".js", ".jsx", ".d.ts", ".mjs", ".cjs", ".mts", ".vue", ".svelte")
_ALIASES = ("@/", "~/", "$lib/", "#/", "src/", "app/", "@app/", "@src/")
_TYPED = {".js": (".ts", ".tsx"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",)}


def javascript(imported: Import, folders: list[str], path: str) -> Iterator[str]:
    module = imported.module.partition("?")[0]
    if module.startswith("."):
        yield from _scripts(joined(folders, module), path)
        return
    alias = next((alias for alias in _ALIASES if module.startswith(alias)), "")
    if alias:
        inner = module.removeprefix(alias)
        for root in ("src", "app", ""):
            yield from list(_scripts(joined([root], inner), path))[:4]
        yield from _scripts(f"*/{inner}", path)
    elif module.startswith("@") and module.count("/") >= 1:  # a package of a monorepo
        name, _, inner = module.partition("/")[2].partition("/")
        for root in (f"packages/{name}", f"*/{name}"):
            for place in [f"src/{inner}", inner] if inner else ["src/index", "index"]:
                yield from list(_scripts(f"{root}/{place}", path))[:2]
    elif "/" in module:
        yield from list(_scripts(f"*/{module}", path))[:8]


def _scripts(base: str, path: str) -> Iterator[str]:
    """Files that `base` may mean: with an extension, or the index of a folder."""
    if not base:
        return
    stem, dot, ending = base.rpartition(".")
    if dot and "/" not in ending and f".{ending}" in {*_SCRIPTS, *_TYPED, ".json", ".css", ".scss"}:
        yield from (stem + typed for typed in _TYPED.get(f".{ending}", ()))
        yield base
        return
    endings = _SCRIPTS if path.endswith((".ts", ".tsx", ".mts", ".vue", ".svelte")) else (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx")
    yield from (base + ending for ending in endings[:4])
    yield from (f"{base}/index{ending}" for ending in endings[:4])
    yield from (base + ending for ending in endings[4:])


def ruby(imported: Import, folders: list[str], _path: str) -> Iterator[str]:
    module = imported.module.removesuffix(".rb")
    if module.startswith("."):
        yield joined(folders, module) + ".rb"
        return
    for root in ("lib", "app", ""):
        yield joined([root], module) + ".rb"
    if "/" in module:
        yield f"*/{module}.rb"


def lua(imported: Import, folders: list[str], _path: str) -> Iterator[str]:
    module = imported.module.replace(".", "/").lstrip("/")
    for root in ([], ["lua"], folders, ["*"]):
        yield joined(root, module) + ".lua"
        yield joined(root, module, "init.lua")


def bash(imported: Import, folders: list[str], _path: str) -> Iterator[str]:
    yield joined(folders, imported.module)
    yield joined([], imported.module)
    tail = imported.module.rpartition("/")[2]
    if "." in tail:
        yield f"*/{tail}"
