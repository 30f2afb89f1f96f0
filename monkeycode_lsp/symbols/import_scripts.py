"""Imports of languages whose modules are files: Python, JavaScript, Ruby, Lua, Bash."""

from __future__ import annotations

import re
from collections.abc import Iterator

from monkeycode_lsp.symbols.import_names import Names, listed, renamed
from monkeycode_lsp.symbols.model import Import

Found = tuple[int, Import]
"""Where it begins, as an offset, and what it is."""

_PYTHON = re.compile(
    r"^[ \t]*+(?:from[ \t]++(?P<level>\.*+)[ \t]*+(?P<module>(?:(?!import\b)[\w.]++)?)[ \t]*+import\b[ \t]*+(?:\((?P<many>(?:#[^\n]*+|[^)#]++){0,400})\)?|(?P<names>[^\n#;(]+))"
    r"|import[ \t]++(?P<plain>[^\n#;(]+))",
    re.MULTILINE,
)
_COMMENT = re.compile(r"#[^\n]*")


def python(text: str) -> Iterator[Found]:
    for found in _PYTHON.finditer(text):
        if found["plain"]:
            for part in found["plain"].replace("\\", " ").split(","):
                module, alias = renamed(part)
                if _is_dotted(module):
                    yield found.start(), Import(module, alias=alias if alias != module else module.partition(".")[0])
        elif found["module"] or found["level"]:
            names = listed(_COMMENT.sub("", found["many"] or found["names"] or "").replace("\\", " "))
            yield found.start(), Import(found["module"], names, level=len(found["level"]))


def _is_dotted(module: str) -> bool:
    return bool(module) and all(part.isidentifier() for part in module.split("."))


_JAVASCRIPT = re.compile(
    r"^[ \t]*+(?:import|export)[ \t]++(?:type[ \t]++)?(?P<clause>(?:[^'\";()=\s]++\s++){1,400}?)from[ \t]*+['\"](?P<module>[^'\"\n]+)['\"]"
    r"|^[ \t]*+import[ \t]*+['\"](?P<bare>[^'\"\n]+)['\"]"
    r"|^[ \t]*+(?:export[ \t]++)?(?:const|let|var|import)[ \t]++(?P<bound>[\w$]+|\{[^}]{0,4000}\})[ \t]*+=[ \t]*+(?:await[ \t]++)?(?:require|import)[ \t]*+\([ \t]*+['\"](?P<required>[^'\"\n]+)['\"]",
    re.MULTILINE,
)


def javascript(text: str) -> Iterator[Found]:
    for found in _JAVASCRIPT.finditer(text):
        if found["bare"]:
            yield found.start(), Import(found["bare"])
        elif found["required"]:
            bound = found["bound"]
            names, alias = (listed(bound.strip("{} \n"), ":"), "") if bound.startswith("{") else ((), bound)
            yield found.start(), Import(found["required"], names, alias)
        else:
            yield found.start(), _clause(found["clause"], found["module"])


def _clause(clause: str, module: str) -> Import:
    """`a, { b as c }`, `* as d`, `*`."""
    outer, _, rest = clause.partition("{")
    inner = rest.partition("}")[0]
    names = listed(re.sub(r"(?m)//[^\n]*|\btype\s+(?=\w)", "", inner))
    alias = ""
    for part in outer.split(","):
        there, here = renamed(part)
        if there == "*" and here == "*":
            names = (*names, ("*", "*"))
        elif there == "*":
            alias = here
        elif there:
            names = (("default", there), *names)
    return Import(module, names, alias)


_RUBY = re.compile(
    r"^[ \t]*+(?P<how>require_relative|require|load|autoload[ \t]++:(?P<name>\w+),)[ \t(]*['\"](?P<module>[^'\"\n]+)['\"]", re.MULTILINE
)


def ruby(text: str) -> Iterator[Found]:
    for found in _RUBY.finditer(text):
        relative = found["how"] == "require_relative" and not found["module"].startswith(".")
        names: Names = ((found["name"], found["name"]),) if found["name"] else (("*", "*"),)
        yield found.start(), Import(("./" if relative else "") + found["module"], names)


_LUA = re.compile(
    r"^[ \t]*+(?:(?:local[ \t]++)?(?P<alias>[\w.]+)[ \t]*+=[ \t]*+)?require[ \t]*+\(?[ \t]*+['\"](?P<module>[^'\"\n]+)['\"]", re.MULTILINE
)


def lua(text: str) -> Iterator[Found]:
    for found in _LUA.finditer(text):
        yield found.start(), Import(found["module"], alias=(found["alias"] or "").rpartition(".")[2])


_BASH = re.compile(r"^[ \t]*+(?:source|\.)[ \t]++[\"']?(?P<file>[^\s\"';&|]+)", re.MULTILINE)


def bash(text: str) -> Iterator[Found]:
    for found in _BASH.finditer(text):
        path = re.sub(r"^\$(?:\{[^}]*\}|\([^)]*\)|\w+)/?", "./", found["file"])
        yield found.start(), Import(path, (("*", "*"),))
