"""The files that a document's imports lead to, by the paths and the imports that are stored.  Everything here blocks, for a millisecond.

A file that only passes on what others define (`__init__.py`, `index.ts`, `mod.rs`) is followed, one step.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

import msgspec

from monkeycode_lsp.index import languages, store
from monkeycode_lsp.symbols import paths
from monkeycode_lsp.symbols.model import Import

MOST_FILES = 128
_MOST_FITTING = 32
"""Files that one candidate stands for."""
_MOST_FOLLOWED = 16
_MOST_OF_MODULE = 8
"""Files of a package that is a folder."""
_MOST_PASSED_ON = 16
"""Imports of one that is followed."""
_ALL = "*"
_UNNAMED = frozenset({_ALL, "default"})
"""What is imported by these has the name that it has where it is defined, or none."""
_PASSES_ON = frozenset({"__init__", "index", "mod", "lib"})

File = tuple[int, str]
"""Its id and path."""


class Near(msgspec.Struct, frozen=True):
    """What the imports bring to a document."""

    ranks: dict[int, int]
    """Of each file, by its id: the most important is 0."""
    named: dict[str, str]
    """What a name is called where it is defined, if it is imported under another."""


def near(
    db: sqlite3.Connection, imported: Iterable[Import], wanted: frozenset[str], path: str, language: str, *, is_late: Callable[[], bool]
) -> Near:
    """Of the document at `path`; what it imports of the names that are wanted counts most."""
    found = Near({}, {})
    n_left = _MOST_FOLLOWED
    for one in sorted(imported, key=lambda one: wanted.isdisjoint(one.here)):
        if len(found.ranks) >= MOST_FILES or is_late():
            break
        brought = _brought(one, wanted)
        found.named.update({here: there for there, here in brought.items() if there != here})
        for file in _files(db, one, path, language):
            found.ranks.setdefault(file[0], len(found.ranks))
            if brought and n_left and _passes_on(file[1]):
                n_left -= 1
                _follow(db, file, brought, found)
    return found


def of_module(db: sqlite3.Connection, imported: Iterable[Import], path: str, language: str) -> list[File]:
    """The files of a module; of several that may be meant, the first."""
    for one in imported:
        if found := list(dict.fromkeys(_files(db, one, path, language))):
            folder = found[0][1].rpartition("/")[0]
            is_folder = languages.of(found[0][1]) == "go"
            return [file for file in found if file[1].rpartition("/")[0] == folder][:_MOST_OF_MODULE] if is_folder else found[:1]
    return []


def fitting(db: sqlite3.Connection, candidate: str) -> list[File]:
    """Those that fit a candidate (see `symbols.paths`)."""
    tail = candidate.removeprefix("*/")
    end = store.backwards(tail)
    values: tuple[str, ...]
    column = "folder_backwards" if tail.endswith("/") else "backwards"
    if tail == candidate:
        query, values = f"{column} = ?", (end,)
    else:
        query, values = f"{column} >= ? AND {column} < ?", (end, f"{end[:-1]}0")  # "0" comes after "/"
    return db.execute(f"SELECT id, path FROM files WHERE {query} ORDER BY path LIMIT ?", (*values, _MOST_FITTING)).fetchall()  # noqa: S608 - ours


def _brought(one: Import, wanted: frozenset[str]) -> dict[str, str]:
    """Each wanted name that may come with this import: what it is called there → here."""
    brought = {there: here for there, here in one.names if here in wanted and there not in _UNNAMED}
    if not one.names or any(there == _ALL for there, _ in one.names):
        brought |= {name: name for name in wanted}
    return brought


def _files(db: sqlite3.Connection, one: Import, path: str, language: str) -> list[File]:
    """Where it may be, most likely first.  A place at any depth is a guess, for when there is none that is named in full."""
    candidates = paths.resolve(one, path, language)
    exact = [candidate for candidate in candidates if not candidate.startswith("*/") and not candidate.endswith("/")]
    marks = ", ".join("?" * len(exact))
    known = {path: (id_, path) for id_, path in db.execute(f"SELECT id, path FROM files WHERE path IN ({marks})", exact)}  # noqa: S608 - ours
    found = [known[candidate] for candidate in exact if candidate in known]
    return found or [file for candidate in candidates if candidate not in exact for file in fitting(db, candidate)]


def _passes_on(path: str) -> bool:
    return path.rpartition("/")[2].partition(".")[0] in _PASSES_ON


def _follow(db: sqlite3.Connection, file: File, brought: dict[str, str], found: Near) -> None:
    """To where the names are defined that this file only passes on."""
    id_, path = file
    language = languages.of(path)
    for one, names in islice(_passed_on(_imports(db, id_), brought), _MOST_PASSED_ON):
        found.named.update({here: there for there, here in names.items() if there != here})
        for further, _ in _files(db, one, path, language):
            if len(found.ranks) < MOST_FILES:
                found.ranks.setdefault(further, len(found.ranks))


def _passed_on(imported: Sequence[Import], brought: dict[str, str]) -> Iterator[tuple[Import, dict[str, str]]]:
    """Those of its imports that bring such names, and what each name is called there → in the document."""
    for one in imported:
        names = {there: brought[here] for there, here in one.names if here in brought and there not in _UNNAMED}
        if names or any(there == _ALL for there, _ in one.names):
            yield one, names


def _imports(db: sqlite3.Connection, id_: int) -> list[Import]:
    row = db.execute("SELECT imports FROM files WHERE id = ?", (id_,)).fetchone()
    return msgspec.msgpack.decode(row[0], type=list[Import]) if row is not None else []
