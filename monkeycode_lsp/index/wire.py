"""What the server and its index process tell each other: JSON, one message a line, over the process's standard input and output."""

from __future__ import annotations

from typing import Literal

import msgspec


class Pace(msgspec.Struct, frozen=True):
    """How changes are found."""

    walk_every_s: float = 1_800.0
    """Though the workspace is watched: the system may lose events."""
    unwatched_every_s: float = 60.0
    """Where it is not watched."""
    most_watched: int = 20_000
    """Folders; where there are more, it is walked now and then instead."""


class Limits(msgspec.Struct, frozen=True):
    """So that a home folder, or a whole disk, is a workspace as good as any: what is nearest to its top is found."""

    files: int = 100_000
    """Source files that are kept."""
    folders: int = 50_000
    """Folders that are looked into."""
    entries: int = 2_000_000
    """Names in them, altogether."""
    entries_of_folder: int = 50_000
    """Names in one of them; a larger one holds data."""
    database_mb: int = 512


class Begin(msgspec.Struct, frozen=True, tag="begin"):
    """The first message to the process: what to do."""

    folder: bytes
    """Paths are bytes that need not be text."""
    database: bytes
    ignore_files: tuple[str, ...] = ()
    secret_files: tuple[str, ...] = ()
    """More patterns for names of files that hold secrets."""
    pace: Pace = Pace()
    limits: Limits = Limits()


class Changed(msgspec.Struct, frozen=True, tag="changed"):
    """Paths in the workspace that may have changed; relative, `/` separated."""

    paths: tuple[str, ...]


class Rebuild(msgspec.Struct, frozen=True, tag="rebuild"):
    """A reader found the database damaged, or gone."""


ToWorker = Begin | Changed | Rebuild


class State(msgspec.Struct, frozen=True, tag="state"):
    """How far the index is."""

    state: Literal["waiting", "indexing", "ready", "off"]
    """waiting: the process of another window keeps the database."""
    files: int = 0
    symbols: int = 0
    watched: bool = False
    """Whether the system tells of changes; else the workspace is walked now and then."""
    why: str = ""
    """For people: why it is off, not watched, or not complete."""


class Notice(msgspec.Struct, frozen=True, tag="notice"):
    """What the user should know."""

    text: str


FromWorker = State | Notice
