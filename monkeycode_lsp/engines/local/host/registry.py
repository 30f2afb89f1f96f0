"""Notes of the engine processes that run: a small file beside each one's socket.

A process writes its note when it listens and takes it away when it leaves in peace.  So a note at a place
where nobody answers says that a process has crashed.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path
from typing import Literal

import msgspec

from monkeycode_lsp.engines.local.host import jsontext, rendezvous
from monkeycode_lsp.engines.local.host.rendezvous import Place
from monkeycode_lsp.engines.local.ladder import Attempt
from monkeycode_lsp.engines.local.wire import Build


class Note(msgspec.Struct, frozen=True):
    """What is known of an engine process without asking it."""

    kind: Literal["native", "managed"]
    model: str
    """Path of its model file."""
    version: str
    """Of this program."""
    log: str = ""
    """Path of its log; empty: none could be written."""
    attempt: Attempt = Attempt()
    """How it was told to load the model."""
    build: Build | None = None
    """Of its library; None: it is not imported yet."""
    pid: int = 0
    since: float = 0.0
    """Unix time in seconds."""
    name: str = ""
    """The model's; empty while it is loaded."""
    on_gpu: bool = False

    @property
    def is_loaded(self) -> bool:
        return bool(self.name)


class Entry:
    """A process's own note."""

    def __init__(self, place: Place, note: Note) -> None:
        """Raises `OSError`."""
        # The mutable state is the note and whether it lies there; it changes in `update` and `remove` only.
        self.place = place
        self.note = note
        self._is_there = True
        _write(place.note, note)

    def update(self, note: Note) -> None:
        """Say something new; a disk that is full leaves what was said before."""
        self.note = note
        if self._is_there:
            with contextlib.suppress(OSError):
                _write(self.place.note, note)

    def remove(self) -> None:
        """Leave in peace."""
        if self._is_there:
            self._is_there = False
            rendezvous.remove(self.place.note)


def read(place: Place) -> Note | None:
    """The note of a place; None: there is none that can be read."""
    try:
        # Of anything else but a file, such as a named pipe, reading might never end.
        return jsontext.load(place.note.read_bytes(), Note) if stat.S_ISREG(place.note.lstat().st_mode) else None
    except (OSError, ValueError):
        return None


def all_notes() -> list[tuple[Place, Note]]:
    """Every place with its note, the newest process first.  Blocking.  Raises `EngineUnavailableError`."""
    found = [(place, note) for place in rendezvous.places() if (note := read(place)) is not None]
    return sorted(found, key=lambda entry: -entry[1].since)


def clear(place: Place) -> Note | None:
    """Take away what a crashed process left, and return its note.  Only for whoever holds the place's lock."""
    note = read(place)
    rendezvous.remove(place.note)
    rendezvous.remove(place.socket)
    return note


def _write(path: Path, note: Note) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".note-")
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(jsontext.dump(note))
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
