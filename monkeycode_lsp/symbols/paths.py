"""Where in the workspace an imported module may be, most likely first.

A candidate is a relative path with `/`:

    a/b/c.py    exactly this file
    */b/c.py    this file below any folder, or at the top
    a/b/        every file directly in this folder
    */b/        every file directly in a folder of that name, at any depth

Whoever holds the list of files looks candidates up (`fits` says what fits); nothing here touches a disk.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping

from monkeycode_lsp.symbols.model import Import

MAX_CANDIDATES = 40
_MAX_ANCESTORS = 4
_MAX_NAMES = 6
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


def _joined(folders: Iterable[str], *parts: str) -> str:
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


def _roots(folders: list[str], *, nearest_first: bool) -> list[list[str]]:
    """Folders that modules may be named from: the file's own, those above it, the top, and `src` in them."""
    above = [folders[:depth] for depth in range(len(folders), max(0, len(folders) - _MAX_ANCESTORS), -1)]
    roots = [*above, []] if nearest_first else [[], ["src"], *above]
    return [*roots, ["src"]] if nearest_first else roots


def _python(imported: Import, folders: list[str], _path: str) -> Iterator[str]:
    parts = [part for part in imported.module.split(".") if part]
    names = _module_names(imported)
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


def _module_names(imported: Import) -> list[str]:
    """Those that may be modules themselves: a module's name is in lower case."""
    return [name for name, _ in imported.names if name.isidentifier() and name == name.lower()][:_MAX_NAMES]


def _modules(root: list[str], parts: list[str], names: list[str]) -> Iterator[str]:
    """A module, a package, and what may be modules of the package."""
    if parts:
        yield _joined(root, *parts) + ".py"
    yield _joined(root, *parts, "__init__.py")
    for name in names:
        yield _joined(root, *parts, name + ".py")
    if parts:
        yield _joined(root, *parts) + ".pyi"


_SCRIPTS = (".ts", ".tsx", ".js", ".jsx", ".d.ts", ".mjs", ".cjs", ".mts", ".vue", ".svelte")
_ALIASES = ("@/", "~/", "$lib/", "#/", "src/", "app/", "@app/", "@src/")
_TYPED = {".js": (".ts", ".tsx"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",)}


def _javascript(imported: Import, folders: list[str], path: str) -> Iterator[str]:
    module = imported.module.partition("?")[0]
    if module.startswith("."):
        yield from _scripts(_joined(folders, module), path)
        return
    alias = next((alias for alias in _ALIASES if module.startswith(alias)), "")
    if alias:
        inner = module.removeprefix(alias)
        for root in ("src", "app", ""):
            yield from list(_scripts(_joined([root], inner), path))[:4]
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


_GO_STANDARD = """
archive bufio builtin bytes cmp compress container context crypto database debug embed encoding errors expvar flag fmt go hash
html image index io iter log maps math mime net os path plugin reflect regexp runtime slices sort strconv strings structs sync
syscall testing text time unicode unique unsafe weak
"""


def _go(imported: Import, *_: object) -> Iterator[str]:
    """The module's own name is not known, so each ending of the package's path may be a folder."""
    parts = imported.module.split("/")
    if parts[0] in _GO_STANDARD.split() or len(parts) == 1:
        return
    hosted = 3 if "." in parts[0] else 1
    for first in [*range(hosted, len(parts)), *range(1, min(hosted, len(parts)))]:
        yield "/".join(parts[first:]) + "/"
    if len(parts) > hosted:
        yield "*/" + "/".join(parts[hosted:]) + "/"
    yield "*/" + "/".join(parts[-2:]) + "/"
    if len(parts) == hosted:
        yield "*/" + parts[-1] + "/"


def _rust(imported: Import, folders: list[str], path: str) -> Iterator[str]:
    parts = [part for part in imported.module.split("::") if part]
    names = _module_names(imported)
    if not parts or parts[0] in {"std", "core", "alloc"}:
        return
    stem = path.rpartition("/")[2].removesuffix(".rs")
    own = folders if stem in {"mod", "lib", "main"} else [*folders, stem]
    if parts[0] == "crate":
        root = folders[: len(folders) - folders[::-1].index("src")] if "src" in folders else folders[:1]
        yield from _crate(root, parts[1:], names)
    elif parts[0] in {"self", "super"}:
        while parts and parts[0] in {"self", "super"}:
            own = own[:-1] if parts[0] == "super" else own
            parts = parts[1:]
        yield from _crate(own, parts, names)
    else:
        for crate in dict.fromkeys([parts[0].replace("_", "-"), parts[0]]):
            for place in _crate(["src"], parts[1:], names):
                yield f"*/{crate}/{place}"


def _crate(root: list[str], parts: list[str], names: list[str]) -> Iterator[str]:
    """The module's file, those of its modules, and the file of the module around it."""
    for name in [[*parts], *([*parts, name] for name in names)]:
        if name:
            yield _joined(root, *name) + ".rs"
            yield _joined(root, *name, "mod.rs")
    if len(parts) > 1:
        yield _joined(root, *parts[:-1]) + ".rs"
        yield _joined(root, *parts[:-1], "mod.rs")
    elif root and root[-1] == "src":
        yield _joined(root, "lib.rs")
        yield _joined(root, "main.rs")
    elif root:
        yield _joined(root) + ".rs"
        yield _joined(root, "mod.rs")


_OUTSIDE = frozenset({"java", "javax", "kotlin", "scala", "kotlinx", "android", "System", "Microsoft"})
_PACKAGED = (".java", ".kt", ".scala")


def _java(imported: Import, folders: list[str], path: str) -> Iterator[str]:
    """Of Java, Kotlin and Scala: a file per class, or any file of the package's folder."""
    parts = imported.module.split(".")
    if parts[0] in _OUTSIDE:
        return
    own = next((ending for ending in _PACKAGED if path.endswith(ending)), ".java")
    roots = [folders[: folders.index(parts[0])], ["*"]] if parts[0] in folders else [["*"]]
    for root in roots:
        for name, _ in imported.names[:_MAX_NAMES]:
            for ending in dict.fromkeys([own, *_PACKAGED]):
                yield _joined(root, *parts, name + ending if name != "*" else "") + ("/" if name == "*" else "")
        if parts[-1][:1].isupper():  # a member of a class
            yield _joined(root, *parts) + own
        elif own != ".java":
            yield _joined(root, *parts) + "/"


_C_STANDARD = """
assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic stdbool stddef
stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype unistd fcntl pthread dirent poll netdb
"""


def _c(imported: Import, folders: list[str], _path: str) -> Iterator[str]:
    module = imported.module
    bracketed = module.startswith("<")
    module = module.strip("<>")
    stem, dot, _ = module.rpartition(".")
    if bracketed and (not dot or stem in _C_STANDARD.split()):  # <vector>, <stdio.h>
        return
    if not bracketed:
        yield _joined(folders, module)
    yield _joined(["include"], module)
    yield _joined(["src"], module)
    yield _joined([], module)
    inner = module.lstrip("./")
    yield f"*/{inner}"


def _csharp(imported: Import, *_: object) -> Iterator[str]:
    """A namespace is a folder by custom."""
    parts = imported.module.split(".")
    if parts[0] in _OUTSIDE:
        return
    for first in range(min(3, len(parts))):
        tail = "/".join(parts[first:])
        for name, _here in imported.names[:1]:
            yield f"*/{tail}/" if name == "*" else f"*/{tail}/{name}.cs"


def _ruby(imported: Import, folders: list[str], _path: str) -> Iterator[str]:
    module = imported.module.removesuffix(".rb")
    if module.startswith("."):
        yield _joined(folders, module) + ".rb"
        return
    for root in ("lib", "app", ""):
        yield _joined([root], module) + ".rb"
    if "/" in module:
        yield f"*/{module}.rb"


def _php(imported: Import, folders: list[str], _path: str) -> Iterator[str]:
    if imported.module.startswith("./"):
        yield _joined(folders, imported.module)
        yield "*/" + imported.module.removeprefix("./")
        return
    parts = imported.module.split("\\")
    for name, _ in imported.names[:_MAX_NAMES]:
        for first in range(min(3, len(parts) + 1)):  # the first parts are often the prefix that stands for `src`
            tail = "/".join([*parts[first:], name]) + ".php"
            yield f"src/{tail}"
            yield f"*/{tail}"


def _swift(imported: Import, *_: object) -> Iterator[str]:
    name = imported.module.partition(".")[0]
    yield f"Sources/{name}/"
    yield f"*/{name}/"


def _lua(imported: Import, folders: list[str], _path: str) -> Iterator[str]:
    module = imported.module.replace(".", "/").lstrip("/")
    for root in ([], ["lua"], folders, ["*"]):
        yield _joined(root, module) + ".lua"
        yield _joined(root, module, "init.lua")


def _bash(imported: Import, folders: list[str], _path: str) -> Iterator[str]:
    yield _joined(folders, imported.module)
    yield _joined([], imported.module)
    tail = imported.module.rpartition("/")[2]
    if "." in tail:
        yield f"*/{tail}"


_Resolver = Callable[[Import, list[str], str], Iterator[str]]
_RESOLVERS: Mapping[str, _Resolver] = {
    "python": _python,
    "javascript": _javascript,
    "javascriptreact": _javascript,
    "typescript": _javascript,
    "typescriptreact": _javascript,
    "vue": _javascript,
    "svelte": _javascript,
    "go": _go,
    "rust": _rust,
    "java": _java,
    "kotlin": _java,
    "scala": _java,
    "c": _c,
    "cpp": _c,
    "csharp": _csharp,
    "ruby": _ruby,
    "php": _php,
    "swift": _swift,
    "lua": _lua,
    "bash": _bash,
    "shellscript": _bash,
}
