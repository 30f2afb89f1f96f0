"""What a file imports, read from its text line by line: it needs no grammar, and an unfinished file does not disturb it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from monkeycode_lsp.symbols.model import Import

MAX_SOURCE = 200_000
"""Characters that are looked at: imports stand at the top."""

MAX_IMPORTS = 300
_NAMES = tuple[tuple[str, str], ...]
_Found = tuple[int, Import]
_Reader = Callable[[str], Iterator[_Found]]
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


_PYTHON = re.compile(
    r"^[ \t]*+(?:from[ \t]++(?P<level>\.*+)[ \t]*+(?P<module>(?:(?!import\b)[\w.]++)?)[ \t]*+import\b[ \t]*+(?:\((?P<many>(?:#[^\n]*+|[^)#]++){0,400})\)?|(?P<names>[^\n#;(]+))"
    r"|import[ \t]++(?P<plain>[^\n#;(]+))",
    re.MULTILINE,
)
_COMMENT = re.compile(r"#[^\n]*")


def _python(text: str) -> Iterator[_Found]:
    for found in _PYTHON.finditer(text):
        if found["plain"]:
            for part in found["plain"].replace("\\", " ").split(","):
                module, alias = _renamed(part)
                if _is_dotted(module):
                    yield found.start(), Import(module, alias=alias if alias != module else module.partition(".")[0])
        elif found["module"] or found["level"]:
            names = _listed(_COMMENT.sub("", found["many"] or found["names"] or "").replace("\\", " "))
            yield found.start(), Import(found["module"], names, level=len(found["level"]))


def _is_dotted(module: str) -> bool:
    return bool(module) and all(part.isidentifier() for part in module.split("."))


def _renamed(part: str, sign: str = " as ") -> tuple[str, str]:
    """(name there, name here) of `a` or `a as b`."""
    there, _, here = " ".join(part.split()).partition(sign)
    return there.strip(), here.strip() or there.strip()


def _listed(names: str, sign: str = " as ") -> _NAMES:
    pairs = (_renamed(part, sign) for part in names.split(","))
    return tuple((there, here) for there, here in pairs if there == "*" or there.isidentifier())


_JAVASCRIPT = re.compile(
    r"^[ \t]*+(?:import|export)[ \t]++(?:type[ \t]++)?(?P<clause>(?:[^'\";()=\s]++\s++){1,400}?)from[ \t]*+['\"](?P<module>[^'\"\n]+)['\"]"
    r"|^[ \t]*+import[ \t]*+['\"](?P<bare>[^'\"\n]+)['\"]"
    r"|^[ \t]*+(?:export[ \t]++)?(?:const|let|var|import)[ \t]++(?P<bound>[\w$]+|\{[^}]{0,4000}\})[ \t]*+=[ \t]*+(?:await[ \t]++)?(?:require|import)[ \t]*+\([ \t]*+['\"](?P<required>[^'\"\n]+)['\"]",
    re.MULTILINE,
)


def _javascript(text: str) -> Iterator[_Found]:
    for found in _JAVASCRIPT.finditer(text):
        if found["bare"]:
            yield found.start(), Import(found["bare"])
        elif found["required"]:
            bound = found["bound"]
            names, alias = (_listed(bound.strip("{} \n"), ":"), "") if bound.startswith("{") else ((), bound)
            yield found.start(), Import(found["required"], names, alias)
        else:
            yield found.start(), _clause(found["clause"], found["module"])


def _clause(clause: str, module: str) -> Import:
    """`a, { b as c }`, `* as d`, `*`."""
    outer, _, rest = clause.partition("{")
    inner = rest.partition("}")[0]
    names = _listed(re.sub(r"(?m)//[^\n]*|\btype\s+(?=\w)", "", inner))
    alias = ""
    for part in outer.split(","):
        there, here = _renamed(part)
        if there == "*" and here == "*":
            names = (*names, ("*", "*"))
        elif there == "*":
            alias = here
        elif there:
            names = (("default", there), *names)
    return Import(module, names, alias)


_GO = re.compile(r"^[ \t]*+import[ \t]*+(?:\((?P<many>[^)]{0,8000})\)?|(?P<one>[^\n(]*))", re.MULTILINE)
_GO_SPEC = re.compile(r"(?:(?P<alias>[\w.]{1,80}+)[ \t]++)?[\"`](?P<module>[^\"`\n]+)[\"`]")


def _go(text: str) -> Iterator[_Found]:
    for found in _GO.finditer(text):
        start = found.start("many") if found["many"] is not None else found.start("one")
        for spec in _GO_SPEC.finditer(found["many"] or found["one"] or ""):
            alias = spec["alias"] or ""
            package = re.sub(r"/v\d+$", "", spec["module"]).rpartition("/")[2].removeprefix("go-")
            names: _NAMES = (("*", "*"),) if alias == "." else ()
            yield start + spec.start(), Import(spec["module"], names, "" if alias in {".", "_"} else alias or package)


_RUST = re.compile(
    r"^[ \t]*+(?:pub(?:\([^)\n]*\))?[ \t]++)?(?:use[ \t]++(?P<use>[^;]{1,2000}+);|mod[ \t]++(?P<mod>\w+)[ \t]*+;)", re.MULTILINE
)


def _rust(text: str) -> Iterator[_Found]:
    for found in _RUST.finditer(text):
        if found["mod"]:
            yield found.start(), Import(f"self::{found['mod']}", alias=found["mod"])
        else:
            for module, names in _tree(re.sub(r"//[^\n]*", "", found["use"]), "::"):
                yield found.start(), Import(module, names)


def _tree(written: str, separator: str) -> Iterator[tuple[str, _NAMES]]:
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


def _leaf(path: str, separator: str) -> Iterator[tuple[str, _NAMES]]:
    path, here = _renamed(path.replace("=>", " as "))
    module, _, name = path.strip().rpartition(separator)
    if name == "self":
        module, _, name = module.rpartition(separator)
    here = here.rpartition(separator)[2] if here == path else here
    if name in {"*", "_"}:
        yield module, (("*", "*"),)
    elif name.isidentifier():
        yield module, ((name, name if here == "self" else here),)


_JAVA = re.compile(
    r"^[ \t]*+(?:global[ \t]++)?import[ \t]++(?:static[ \t]++)?(?P<path>[\w.]+?)(?P<all>\.\*)?(?:[ \t]++as[ \t]++(?P<alias>\w+))?[ \t]*+;?[ \t]*+$",
    re.MULTILINE,
)


def _java(text: str) -> Iterator[_Found]:
    """Of Java and Kotlin."""
    for found in _JAVA.finditer(text):
        module, _, name = found["path"].rpartition(".")
        if found["all"]:
            yield found.start(), Import(found["path"], (("*", "*"),))
        elif name:
            yield found.start(), Import(module, ((name, found["alias"] or name),))


_SCALA = re.compile(r"^[ \t]*+import[ \t]++(?P<path>\w+(?:\.\w+)*+(?:\.(?:\{[^}]{0,2000}\}|\*))?)", re.MULTILINE)


def _scala(text: str) -> Iterator[_Found]:
    for found in _SCALA.finditer(text):
        for module, names in _tree(found["path"].replace(".{", ".{ "), "."):
            yield found.start(), Import(module.rstrip("."), names)


_INCLUDE = re.compile(r"^[ \t]*+#[ \t]*+(?:include|import)[ \t]*+(?P<quote>[<\"])(?P<module>[^>\"\n]+)[>\"]", re.MULTILINE)


def _c(text: str) -> Iterator[_Found]:
    """`<…>` keeps its brackets: it is looked for elsewhere."""
    for found in _INCLUDE.finditer(text):
        yield found.start(), Import(found["module"] if found["quote"] == '"' else f"<{found['module']}>", (("*", "*"),))


_USING = re.compile(
    r"^[ \t]*+(?:global[ \t]++)?using[ \t]++(?:static[ \t]++)?(?:(?P<alias>\w+)[ \t]*+=[ \t]*+)?(?P<module>[\w.]+)[ \t]*+;", re.MULTILINE
)


def _csharp(text: str) -> Iterator[_Found]:
    for found in _USING.finditer(text):
        module, _, name = found["module"].rpartition(".")
        names: _NAMES = ((name, found["alias"]),) if found["alias"] else (("*", "*"),)
        yield found.start(), Import(module if found["alias"] else found["module"], names)


_RUBY = re.compile(
    r"^[ \t]*+(?P<how>require_relative|require|load|autoload[ \t]++:(?P<name>\w+),)[ \t(]*['\"](?P<module>[^'\"\n]+)['\"]", re.MULTILINE
)


def _ruby(text: str) -> Iterator[_Found]:
    for found in _RUBY.finditer(text):
        relative = found["how"] == "require_relative" and not found["module"].startswith(".")
        names: _NAMES = ((found["name"], found["name"]),) if found["name"] else (("*", "*"),)
        yield found.start(), Import(("./" if relative else "") + found["module"], names)


_PHP = re.compile(
    r"^[ \t]*+use[ \t]++(?:function[ \t]++|const[ \t]++)?(?P<use>[\w\\]+(?:\{[^}]{0,4000}\})?(?:[ \t]++as[ \t]++\w+)?(?:[ \t]*+,[ \t]*+[\w\\]+)*)[ \t]*+;"
    r"|\b(?:require|include)(?:_once)?[ \t(]*(?:__DIR__[ \t]*+\.[ \t]*+)?['\"](?P<file>[^'\"\n]+)['\"]",
    re.MULTILINE,
)


def _php(text: str) -> Iterator[_Found]:
    for found in _PHP.finditer(text):
        if found["file"]:
            yield found.start(), Import("./" + found["file"].lstrip("/."), (("*", "*"),))
        else:
            for module, names in _tree(found["use"].lstrip("\\"), "\\"):
                yield found.start(), Import(module, names)


_SWIFT = re.compile(
    r"^[ \t]*+(?:@\w+[ \t]++)?import[ \t]++(?:(?:class|struct|enum|protocol|func|var|typealias)[ \t]++)?(?P<module>[\w.]+)", re.MULTILINE
)


def _swift(text: str) -> Iterator[_Found]:
    for found in _SWIFT.finditer(text):
        yield found.start(), Import(found["module"], (("*", "*"),))


_LUA = re.compile(
    r"^[ \t]*+(?:(?:local[ \t]++)?(?P<alias>[\w.]+)[ \t]*+=[ \t]*+)?require[ \t]*+\(?[ \t]*+['\"](?P<module>[^'\"\n]+)['\"]", re.MULTILINE
)


def _lua(text: str) -> Iterator[_Found]:
    for found in _LUA.finditer(text):
        yield found.start(), Import(found["module"], alias=(found["alias"] or "").rpartition(".")[2])


_BASH = re.compile(r"^[ \t]*+(?:source|\.)[ \t]++[\"']?(?P<file>[^\s\"';&|]+)", re.MULTILINE)


def _bash(text: str) -> Iterator[_Found]:
    for found in _BASH.finditer(text):
        path = re.sub(r"^\$(?:\{[^}]*\}|\([^)]*\)|\w+)/?", "./", found["file"])
        yield found.start(), Import(path, (("*", "*"),))


_READERS: Mapping[str, _Reader] = {
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
    "scala": _scala,
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
