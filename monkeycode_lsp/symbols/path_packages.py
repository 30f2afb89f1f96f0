"""Where packages, crates, namespaces and headers may be.  Each resolver: (import, folders of the importing file, its path)."""

from __future__ import annotations

from collections.abc import Iterator

from monkeycode_lsp.symbols.model import Import
from monkeycode_lsp.symbols.path_parts import MAX_NAMES, joined, module_names

_GO_STANDARD = """
archive bufio builtin bytes cmp compress container context crypto database debug embed encoding errors expvar flag fmt go hash
html image index io iter log maps math mime net os path plugin reflect regexp runtime slices sort strconv strings structs sync
syscall testing text time unicode unique unsafe weak
"""


def go(imported: Import, *_: object) -> Iterator[str]:
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


def rust(imported: Import, folders: list[str], path: str) -> Iterator[str]:
    parts = [part for part in imported.module.split("::") if part]
    names = module_names(imported)
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
            yield joined(root, *name) + ".rs"
            yield joined(root, *name, "mod.rs")
    if len(parts) > 1:
        yield joined(root, *parts[:-1]) + ".rs"
        yield joined(root, *parts[:-1], "mod.rs")
    elif root and root[-1] == "src":
        yield joined(root, "lib.rs")
        yield joined(root, "main.rs")
    elif root:
        yield joined(root) + ".rs"
        yield joined(root, "mod.rs")


_OUTSIDE = frozenset({"java", "javax", "kotlin", "scala", "kotlinx", "android", "System", "Microsoft"})
_PACKAGED = (".java", ".kt", ".scala")


def java(imported: Import, folders: list[str], path: str) -> Iterator[str]:
    """Of Java, Kotlin and Scala: a file per class, or any file of the package's folder."""
    parts = imported.module.split(".")
    if parts[0] in _OUTSIDE:
        return
    own = next((ending for ending in _PACKAGED if path.endswith(ending)), ".java")
    roots = [folders[: folders.index(parts[0])], ["*"]] if parts[0] in folders else [["*"]]
    for root in roots:
        for name, _ in imported.names[:MAX_NAMES]:
            for ending in dict.fromkeys([own, *_PACKAGED]):
                yield joined(root, *parts, name + ending if name != "*" else "") + ("/" if name == "*" else "")
        if parts[-1][:1].isupper():  # a member of a class
            yield joined(root, *parts) + own
        elif own != ".java":
            yield joined(root, *parts) + "/"


_C_STANDARD = """
assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic stdbool stddef
stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype unistd fcntl pthread dirent poll netdb
"""


def c(imported: Import, folders: list[str], _path: str) -> Iterator[str]:
    module = imported.module
    bracketed = module.startswith("<")
    module = module.strip("<>")
    stem, dot, _ = module.rpartition(".")
    if bracketed and (not dot or stem in _C_STANDARD.split()):  # <vector>, <stdio.h>
        return
    if not bracketed:
        yield joined(folders, module)
    yield joined(["include"], module)
    yield joined(["src"], module)
    yield joined([], module)
    inner = module.lstrip("./")
    yield f"*/{inner}"


def csharp(imported: Import, *_: object) -> Iterator[str]:
    """A namespace is a folder by custom."""
    parts = imported.module.split(".")
    if parts[0] in _OUTSIDE:
        return
    for first in range(min(3, len(parts))):
        tail = "/".join(parts[first:])
        for name, _here in imported.names[:1]:
            yield f"*/{tail}/" if name == "*" else f"*/{tail}/{name}.cs"


def php(imported: Import, folders: list[str], _path: str) -> Iterator[str]:
    if imported.module.startswith("./"):
        yield joined(folders, imported.module)
        yield "*/" + imported.module.removeprefix("./")
        return
    parts = imported.module.split("\\")
    for name, _ in imported.names[:MAX_NAMES]:
        for first in range(min(3, len(parts) + 1)):  # the first parts are often the prefix that stands for `src`
            tail = "/".join([*parts[first:], name]) + ".php"
            yield f"src/{tail}"
            yield f"*/{tail}"


def swift(imported: Import, *_: object) -> Iterator[str]:
    name = imported.module.partition(".")[0]
    yield f"Sources/{name}/"
    yield f"*/{name}/"
