"""Imports of languages that name packages, crates, namespaces or headers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from monkeycode_lsp.symbols.import_names import Names, renamed
from monkeycode_lsp.symbols.model import Import

Found = tuple[int, Import]
"""Where it begins, as an offset, and what it is."""

_GO = re.compile(r"^[ \t]*+import[ \t]*+(?:\((?P<many>[^)]{0,8000})\)?|(?P<one>[^\n(]*))", re.MULTILINE)
_GO_SPEC = re.compile(r"(?:(?P<alias>[\w.]{1,80}+)[ \t]++)?[\"`](?P<module>[^\"`\n]+)[\"`]")


def go(text: str) -> Iterator[Found]:
    for found in _GO.finditer(text):
        start = found.start("many") if found["many"] is not None else found.start("one")
        for spec in _GO_SPEC.finditer(found["many"] or found["one"] or ""):
            alias = spec["alias"] or ""
            package = re.sub(r"/v\d+$", "", spec["module"]).rpartition("/")[2].removeprefix("go-")
            names: Names = (("*", "*"),) if alias == "." else ()
            yield start + spec.start(), Import(spec["module"], names, "" if alias in {".", "_"} else alias or package)


_RUST = re.compile(
    r"^[ \t]*+(?:pub(?:\([^)\n]*\))?[ \t]++)?(?:use[ \t]++(?P<use>[^;]{1,2000}+);|mod[ \t]++(?P<mod>\w+)[ \t]*+;)", re.MULTILINE
)


def rust(text: str) -> Iterator[Found]:
    for found in _RUST.finditer(text):
        if found["mod"]:
            yield found.start(), Import(f"self::{found['mod']}", alias=found["mod"])
        else:
            for module, names in _tree(re.sub(r"//[^\n]*", "", found["use"]), "::"):
                yield found.start(), Import(module, names)


def _tree(written: str, separator: str) -> Iterator[tuple[str, Names]]:
    """(module, names) of `a::{b, c::{d as e, self}, f::*}`, without recursion."""
    stack: list[str] = []
    prefix, word = "", ""
    for character in re.sub(r"\s+", " ", written) + ",":
        if character == "{":
            stack.append(prefix)
            prefix, word = prefix + word.strip(), ""
        elif character in ",}":
            yield from _leaf(prefix + word.strip(), separator)
            word = ""
            if character == "}" and stack:
                prefix = stack.pop()
        else:
            word += character


def _leaf(path: str, separator: str) -> Iterator[tuple[str, Names]]:
    path, here = renamed(path.replace("=>", " as "))
    module, _, name = path.strip().rpartition(separator)
    if name == "self":
        module, _, name = module.rpartition(separator)
    here = here.rpartition(separator)[2] if here == path else here
    if name in {"*", "_"}:
        yield module, (("*", "*"),)
    elif name.isidentifier():
        yield module, ((name, name if here == "self" else here),)


_PHP = re.compile(
    r"^[ \t]*+use[ \t]++(?:function[ \t]++|const[ \t]++)?(?P<use>[\w\\]+(?:\{[^}]{0,4000}\})?(?:[ \t]++as[ \t]++\w+)?(?:[ \t]*+,[ \t]*+[\w\\]+)*)[ \t]*+;"
    r"|\b(?:require|include)(?:_once)?[ \t(]*(?:__DIR__[ \t]*+\.[ \t]*+)?['\"](?P<file>[^'\"\n]+)['\"]",
    re.MULTILINE,
)


def php(text: str) -> Iterator[Found]:
    for found in _PHP.finditer(text):
        if found["file"]:
            yield found.start(), Import("./" + found["file"].lstrip("/."), (("*", "*"),))
        else:
            for module, names in _tree(found["use"].lstrip("\\"), "\\"):
                yield found.start(), Import(module, names)


_JAVA = re.compile(
    r"^[ \t]*+(?:global[ \t]++)?import[ \t]++(?:static[ \t]++)?(?P<path>[\w.]+?)(?P<all>\.\*)?(?:[ \t]++as[ \t]++(?P<alias>\w+))?[ \t]*+;?[ \t]*+$",
    re.MULTILINE,
)


def java(text: str) -> Iterator[Found]:
    """Of Java and Kotlin."""
    for found in _JAVA.finditer(text):
        module, _, name = found["path"].rpartition(".")
        if found["all"]:
            yield found.start(), Import(found["path"], (("*", "*"),))
        elif name:
            yield found.start(), Import(module, ((name, found["alias"] or name),))


_SCALA = re.compile(r"^[ \t]*+import[ \t]++(?P<path>\w+(?:\.\w+)*+(?:\.(?:\{[^}]{0,2000}\}|\*))?)", re.MULTILINE)


def scala(text: str) -> Iterator[Found]:
    for found in _SCALA.finditer(text):
        for module, names in _tree(found["path"].replace(".{", ".{ "), "."):
            yield found.start(), Import(module.rstrip("."), names)


_INCLUDE = re.compile(r"^[ \t]*+#[ \t]*+(?:include|import)[ \t]*+(?P<quote>[<\"])(?P<module>[^>\"\n]+)[>\"]", re.MULTILINE)


def c(text: str) -> Iterator[Found]:
    """`<…>` keeps its brackets: it is looked for elsewhere."""
    for found in _INCLUDE.finditer(text):
        yield found.start(), Import(found["module"] if found["quote"] == '"' else f"<{found['module']}>", (("*", "*"),))


_USING = re.compile(
    r"^[ \t]*+(?:global[ \t]++)?using[ \t]++(?:static[ \t]++)?(?:(?P<alias>\w+)[ \t]*+=[ \t]*+)?(?P<module>[\w.]+)[ \t]*+;", re.MULTILINE
)


def csharp(text: str) -> Iterator[Found]:
    for found in _USING.finditer(text):
        module, _, name = found["module"].rpartition(".")
        names: Names = ((name, found["alias"]),) if found["alias"] else (("*", "*"),)
        yield found.start(), Import(module if found["alias"] else found["module"], names)


_SWIFT = re.compile(
    r"^[ \t]*+(?:@\w+[ \t]++)?import[ \t]++(?:(?:class|struct|enum|protocol|func|var|typealias)[ \t]++)?(?P<module>[\w.]+)", re.MULTILINE
)


def swift(text: str) -> Iterator[Found]:
    for found in _SWIFT.finditer(text):
        yield found.start(), Import(found["module"], (("*", "*"),))
