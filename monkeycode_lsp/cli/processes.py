"""The engine processes that run, as rows for people and entries for programs; and how they are ended, in words."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec
from rich.console import Group
from rich.table import Table

from monkeycode_lsp.cli import terminal
from monkeycode_lsp.engines.local.decoder import as_text
from monkeycode_lsp.engines.local.host import control
from monkeycode_lsp.engines.local.host.control import Seen
from monkeycode_lsp.engines.local.host.registry import Note
from monkeycode_lsp.engines.local.host.rendezvous import Place
from monkeycode_lsp.engines.local.wire import Totals

_MEANING = (
    "In tokens, since the start: reused = of prompts, found in the KV cache; read = of prompts, read anew; written = of answers; "
    "drafts = written because a proposal was right, of all proposals."
)
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3_600, 86_400


class Entry(msgspec.Struct, frozen=True, rename="camel"):
    """One process."""

    pid: int
    engine: Literal["native", "managed"]
    model: str
    """The name of its file."""
    name: str
    """What the model calls itself; empty while it is loaded."""
    path: str
    since: float
    """Unix time in seconds."""
    answers: bool
    """Whether it says how it goes; if not, the counts mean nothing."""
    windows: int = 0
    running: int = 0
    memory_bytes: int | None = None
    """What it and, on Linux, its children occupy of the machine's memory; None where the system does not tell."""
    totals: Totals = Totals()
    log: str = ""


def entry(seen: Seen) -> Entry:
    """What is told of a process."""
    note, status = seen.note, seen.status
    known = Entry(
        pid=note.pid,
        engine=note.kind,
        model=as_text(Path(note.model).name),
        name=note.name,
        path=as_text(note.model),
        since=note.since,
        answers=status is not None,
        memory_bytes=memory(note.pid),
        log=as_text(note.log),
    )
    if status is None:
        return known
    return msgspec.structs.replace(known, windows=status.clients, running=status.running, totals=status.totals)


def shown(seen: Iterable[Seen]) -> Group:
    """For people: the processes, what they have done, and what the words mean."""
    entries = [entry(one) for one in seen]
    there = _table("pid", "engine", "up", "memory", "windows", "asks", "model")
    done = _table("pid", "reused", "read", "written", "drafts")
    for one in entries:
        size = terminal.size(one.memory_bytes) if one.memory_bytes is not None else "-"
        busy = (str(one.windows), str(one.running)) if one.answers else ("-", "-")
        model = one.model if one.answers else f"{one.model} (does not answer)"
        there.add_row(str(one.pid), one.engine, up(time.time() - one.since), size, *busy, terminal.plain(model))
        if one.answers:
            totals = one.totals
            drafts = f"{totals.accepted} of {totals.drafted}" if totals.drafted else "-"
            done.add_row(*map(str, (one.pid, totals.reused, totals.read, totals.generated)), drafts)
    return Group(there, "", done, _MEANING) if done.row_count else Group(there)


def _table(*columns: str) -> Table:
    """Of these columns only the last is broken where room is short."""
    made = terminal.table(*columns)
    for column in made.columns[:-1]:
        column.no_wrap = True
    return made


def up(seconds: float) -> str:
    """A time for people: `3 min`."""
    for unit_s, name in ((_DAY_S, "d"), (_HOUR_S, "h"), (_MINUTE_S, "min")):
        if seconds >= unit_s:
            return f"{seconds // unit_s:.0f} {name}"
    return f"{max(0.0, seconds):.0f} s"


def memory(pid: int) -> int | None:
    """Bytes of memory that a process occupies; on Linux with its children, which hold the model of a managed engine."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        if sys.platform == "linux":
            return _resident(pid) + sum(map(_resident_if_there, _children(pid)))
        if sys.platform == "darwin":
            done = subprocess.run(  # noqa: S603 - a fixed program and a number
                ["/bin/ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, timeout=5, check=False
            )
            return int(done.stdout) * 1024
    return None


def _resident(pid: int) -> int:
    pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _resident_if_there(pid: int) -> int:
    with contextlib.suppress(OSError):
        return _resident(pid)
    return 0


def _children(pid: int) -> Iterator[int]:
    """All processes that were started by it, or by one of those; they come and go while they are looked for."""
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, file.read_text(encoding="ascii").split()):
                yield child
                yield from _children(child)


async def stop(running: Iterable[tuple[Place, Note]]) -> list[str]:
    """End processes and tell of each what became of it; empty for one that was not there."""
    return list(await asyncio.gather(*(_stop(place, note) for place, note in running)))


async def _stop(place: Place, note: Note) -> str:
    what = f"The {note.kind} engine process {note.pid} ({Path(note.model).name})"
    match await control.stop(place, note):
        case "left":
            return f"{what} has left."
        case "ended":
            return f"{what} did not answer and was ended."
        case "gone":
            return ""
