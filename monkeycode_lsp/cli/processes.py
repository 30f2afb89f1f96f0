"""The engine processes that run, as rows for people and entries for programs; and how they are ended, in words."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec
from rich.table import Table

from monkeycode_lsp.cli import terminal
from monkeycode_lsp.engines.local.host import control
from monkeycode_lsp.engines.local.host.control import Seen
from monkeycode_lsp.engines.local.host.registry import Note
from monkeycode_lsp.engines.local.host.rendezvous import Place
from monkeycode_lsp.engines.local.wire import Totals

_MINUTE_S, _HOUR_S, _DAY_S = 60, 3_600, 86_400


class Entry(msgspec.Struct, frozen=True, rename="camel"):
    """One process."""

    pid: int
    engine: Literal["native", "managed"]
    model: str
    """Its name; the file's while it is loaded."""
    path: str
    since: float
    """Unix time in seconds."""
    answers: bool
    """Whether it says how it goes; if not, the counts mean nothing."""
    windows: int = 0
    running: int = 0
    memory_bytes: int | None = None
    """What it occupies of the machine's memory; None where the system does not tell."""
    totals: Totals = Totals()
    log: str = ""


def entry(seen: Seen) -> Entry:
    """What is told of a process."""
    note, status = seen.note, seen.status
    known = Entry(
        pid=note.pid,
        engine=note.kind,
        model=note.name or Path(note.model).name,
        path=note.model,
        since=note.since,
        answers=status is not None,
        memory_bytes=memory(note.pid),
        log=note.log,
    )
    if status is None:
        return known
    return msgspec.structs.replace(known, windows=status.clients, running=status.running, totals=status.totals)


def table(seen: Iterable[Seen]) -> Table:
    """For people."""
    columns = ("pid", "engine", "model", "up", "windows", "running", "reused", "read", "generated", "drafts", "memory")
    made = terminal.table(*columns)
    for one in map(entry, seen):
        totals = one.totals
        drafts = f"{totals.accepted}/{totals.drafted}" if totals.drafted else "-"
        counts = (one.windows, one.running, totals.reused, totals.read, totals.generated, drafts)
        told = map(str, counts) if one.answers else ("does not answer", *["-"] * (len(counts) - 1))
        size = terminal.size(one.memory_bytes) if one.memory_bytes is not None else "-"
        made.add_row(str(one.pid), one.engine, terminal.plain(one.model), up(time.time() - one.since), *told, size)
    return made


def up(seconds: float) -> str:
    """A time for people: `3 min`."""
    for unit_s, name in ((_DAY_S, "d"), (_HOUR_S, "h"), (_MINUTE_S, "min")):
        if seconds >= unit_s:
            return f"{seconds // unit_s:.0f} {name}"
    return f"{max(0.0, seconds):.0f} s"


def memory(pid: int) -> int | None:
    """Bytes of memory that a process occupies."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        if sys.platform == "linux":
            pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
            return int(pages) * os.sysconf("SC_PAGE_SIZE")
        if sys.platform == "darwin":
            done = subprocess.run(  # noqa: S603 - a fixed program and a number
                ["/bin/ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, timeout=5, check=False
            )
            return int(done.stdout) * 1024
    return None


async def stop(running: Iterable[tuple[Place, Note]]) -> list[str]:
    """End processes and tell of each what became of it; empty for one that was not there."""
    return list(await asyncio.gather(*(_stop(place, note) for place, note in running)))


async def _stop(place: Place, note: Note) -> str:
    what = f"The {note.kind} engine process {note.pid} ({note.name or Path(note.model).name})"
    match await control.stop(place, note):
        case "left":
            return f"{what} has left."
        case "ended":
            return f"{what} did not answer and was ended."
        case "gone":
            return ""
