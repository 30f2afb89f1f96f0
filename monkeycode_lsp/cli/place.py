"""`FILE:LINE:COL` of the command line, and the document that it points into."""

from __future__ import annotations

import re
from pathlib import Path

import click
import msgspec

from monkeycode_lsp.cli import indexes
from monkeycode_lsp.documents import Documents
from monkeycode_lsp.domain import Snapshot
from monkeycode_lsp.errors import MonkeyCodeError
from monkeycode_lsp.settings import WORKSPACE_FILE
from monkeycode_lsp.text import Encoding

_PLACE = re.compile(r"(?P<file>.+?):(?P<line>\d{1,15})(?::(?P<column>\d{1,15}))?\Z", re.DOTALL)
_MOST_BYTES = 64 * 1024 * 1024
"""Far above every limit that makes sense for a document; some files, such as /dev/zero, have no end."""
_ROOTS = (".git", ".hg", "pyproject.toml", "package.json", "go.mod", "Cargo.toml")

_LANGUAGES = {
    "bash": "shellscript", "c": "c", "cc": "cpp", "clj": "clojure", "cpp": "cpp", "cs": "csharp", "css": "css", "cu": "cuda-cpp",
    "cxx": "cpp", "dart": "dart", "ex": "elixir", "exs": "elixir", "fs": "fsharp", "go": "go", "h": "c", "hpp": "cpp", "hs": "haskell",
    "html": "html", "java": "java", "jl": "julia", "js": "javascript", "json": "json", "jsx": "javascriptreact", "kt": "kotlin",
    "lua": "lua", "md": "markdown", "mjs": "javascript", "ml": "ocaml", "php": "php", "pl": "perl", "proto": "proto", "ps1": "powershell",
    "py": "python", "pyi": "python", "r": "r", "rb": "ruby", "rs": "rust", "scala": "scala", "sh": "shellscript", "sql": "sql",
    "svelte": "svelte", "swift": "swift", "tex": "latex", "toml": "toml", "ts": "typescript", "tsx": "typescriptreact", "vue": "vue",
    "yaml": "yaml", "yml": "yaml", "zig": "zig", "zsh": "shellscript",
}  # fmt: skip
_NAMES = {"Dockerfile": "dockerfile", "Makefile": "makefile", "CMakeLists.txt": "cmake"}


class Place(msgspec.Struct, frozen=True):
    """A place in a file; line and column count from 1, the column in characters."""

    file: Path
    line: int
    column: int | None = None
    """None: the line's end."""


def parse(text: str) -> Place:
    """Raises `click.BadParameter`."""
    found = _PLACE.match(text)
    if found is None or int(found["line"]) < 1 or (found["column"] and int(found["column"]) < 1):
        raise click.BadParameter(f"{text!r} is not FILE:LINE:COL, such as app.py:12:5; both count from 1.")
    return Place(Path(found["file"]), int(found["line"]), int(found["column"]) if found["column"] else None)


def language(file: Path) -> str:
    """The LSP identifier that the file's name means."""
    return _NAMES.get(file.name) or _LANGUAGES.get(file.suffix.lstrip(".").lower(), "plaintext")


def workspace(file: Path) -> Path:
    """The nearest folder above that looks like a project's root, one that an editor has opened before others; without any, the file's own."""
    above = file.absolute().parents
    roots = [folder for folder in above if any((folder / root).exists() for root in _ROOTS)]
    opened = (folder for folder in roots or above if indexes.database(folder).is_file())
    return next(opened, roots[0] if roots else above[0])


def settings_folder(folder: Path) -> Path:
    """Whose `.monkeycode.toml` holds in `folder`: the nearest one that has the file or a `.git`; without one, itself."""
    here = folder.absolute()
    return next((near for near in (here, *here.parents) if any((near / mark).exists() for mark in (WORKSPACE_FILE, ".git"))), here)


def snapshot(place: Place) -> tuple[Snapshot, int]:
    """The document with the cursor there, and how many NUL characters it has.  Raises `MonkeyCodeError`."""
    file = place.file.absolute()
    try:
        with file.open("rb") as opened:
            data = opened.read(_MOST_BYTES + 1)
        text = data.decode("utf-8-sig")
    except OSError as exc:
        raise MonkeyCodeError(f"{place.file} cannot be read: {exc.strerror or exc}.") from exc
    except UnicodeDecodeError as exc:
        raise MonkeyCodeError(f"{place.file} is not UTF-8 text.") from exc
    if len(data) > _MOST_BYTES:
        raise MonkeyCodeError(f"{place.file} is too large.")
    documents, uri = Documents(Encoding.UTF32), file.as_uri()
    documents.add_folder(workspace(file).as_uri())
    documents.open(uri, language(file), 0, text)
    seen = documents.snapshot(uri, place.line - 1, 0 if place.column is None else place.column - 1)
    if seen is None:
        raise MonkeyCodeError(f"{place.file} cannot be opened.")
    n_lines, n_columns = len(seen.lines), len(seen.lines[seen.line].rstrip("\r\n")) + 1
    if place.line > n_lines:
        raise MonkeyCodeError(f"{place.file} has {n_lines} lines, and line {place.line} was asked for.")
    if place.column is None:
        return msgspec.structs.replace(seen, column=n_columns - 1), documents.n_nuls(uri)
    if place.column > n_columns:
        raise MonkeyCodeError(f"Line {place.line} of {place.file} ends at column {n_columns}, and column {place.column} was asked for.")
    return seen, documents.n_nuls(uri)
