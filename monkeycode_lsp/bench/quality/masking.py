"""Which lines of a package are masked for the cross-file tasks (pure).

A masked line is a whole statement that uses a name which the file imports from another module of its package, and
uses it so that its definition matters: it is called with arguments, or something of it is reached with a dot.  It
stands once in its file, so that it cannot be copied from there, and holds no prose, which nobody can guess.
"""

from __future__ import annotations

import ast
import random
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

import msgspec

SHORTEST, LONGEST = 16, 100
"""Characters of a masked line, without its indentation."""
_LEAST_LINES, _MOST_LINES = 20, 2_000
_SEED = 20_261_130
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return, ast.Raise, ast.Assert, ast.Delete)


class Masked(msgspec.Struct, frozen=True):
    """One task."""

    path: str
    """Of the file, relative to the workspace."""
    name: str
    """The one that comes from another file."""
    before: str
    """Ends with the line's indentation."""
    gold: str
    after: str
    """Begins with the line's end."""

    @property
    def id(self) -> str:
        number = self.before.count("\n") + 1
        return f"{self.path}:{number}"

    @property
    def text(self) -> str:
        """The file without the line's text, as it lies in the workspace."""
        return self.before + self.after


def choose(files: Iterable[Iterable[Masked]], most: int) -> list[Masked]:
    """One line of each file, of at most so many files; the same each time.  A smaller choice is the beginning of a larger one."""
    of_files = [_draw(found, found[0].path) for found in map(list, files) if found]
    random.Random(_SEED).shuffle(of_files)  # noqa: S311 - the same on every run
    return of_files[:most]


def _draw(found: list[Masked], path: str) -> Masked:
    return random.Random(f"{_SEED} {path}").choice(found)  # noqa: S311 - the same on every run


def places(path: str, text: str, modules: Collection[str]) -> Iterator[Masked]:
    """All lines that are fit.  `modules`: all files of the package, by their paths."""
    text = text.replace("\r\n", "\n")
    lines = text.split("\n")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    names = frozenset(_imported(tree, path, frozenset(modules)))
    if not names or not _LEAST_LINES <= len(lines) <= _MOST_LINES:
        return
    counts = Counter(line.strip() for line in lines)
    for statement in ast.walk(tree):
        if not isinstance(statement, _SIMPLE) or statement.lineno != statement.end_lineno:
            continue
        line = lines[statement.lineno - 1]
        used = next((name for name in _uses(statement) if name in names), "")
        bare = line.strip()
        if used and not _has_prose(statement) and SHORTEST <= len(bare) <= LONGEST and counts[bare] == 1 and _is_alone(statement, line):
            start = sum(len(one) + 1 for one in lines[: statement.lineno - 1])
            indent = len(line) - len(line.lstrip())
            yield Masked(path, used, text[: start + indent], line[indent:].rstrip(), text[start + len(line.rstrip()) :])


def _is_alone(statement: ast.stmt, line: str) -> bool:
    """Whether the statement is all that stands on its line."""
    return line.isascii() and not line[: statement.col_offset].strip() and not line[statement.end_col_offset :].strip()


def _has_prose(statement: ast.AST) -> bool:
    return any(isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value for node in ast.walk(statement))


def _uses(statement: ast.AST) -> Iterator[str]:
    """Names that are called with arguments, or of which something is reached with a dot."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and (node.args or node.keywords):
            yield node.func.id
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node.value.id


def _imported(tree: ast.AST, path: str, modules: frozenset[str]) -> Iterator[str]:
    """Names that come from another file of the package."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom):
            continue
        source = _source(node, path)
        for alias in node.names:
            if any(file != path and file in modules for file in (*_files(f"{source}/{alias.name}"), *_files(source))):
                yield alias.asname or alias.name


def _source(node: ast.ImportFrom, path: str) -> str:
    """The module's path without an ending."""
    parts = path.split("/")[: -node.level] if node.level else []
    return "/".join([*parts, *(node.module or "").split(".")]).rstrip("/")


def _files(module: str) -> tuple[str, str]:
    return f"{module}.py", f"{module}/__init__.py"
