"""What processes cost, and which ones belong to a benchmark.  Linux tells; elsewhere there are no figures."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")
_POLL_S = 0.05
_PRIVATE = re.compile(r"^Private_\w+: +(\d+) kB", re.MULTILINE)
_RESIDENT = re.compile(r"^VmRSS:\s+(\d+) kB", re.MULTILINE)
_THREADS = re.compile(r"^Threads:\s+(\d+)", re.MULTILINE)
_STATE = re.compile(r"^State:\s+(\w)", re.MULTILINE)
_PARENT = re.compile(r"^PPid:\s+(\d+)", re.MULTILINE)


def resident_mb(pid: int) -> float:
    """Resident memory of a process in MB, shared pages included; 0 where the system does not tell."""
    found = _RESIDENT.search(_text(pid, "status"))
    return int(found.group(1)) / 1000 if found else 0.0


def private_mb(pid: int) -> float:
    """Memory that only this process has, in MB: what would be free without it; 0 where the system does not tell."""
    return sum(int(found) for found in _PRIVATE.findall(_text(pid, "smaps_rollup"))) / 1000


def open_files(pid: int) -> int:
    """Descriptors that are open in a process, sockets and pipes included; 0 where the system does not tell."""
    try:
        return len(list((_PROC / str(pid) / "fd").iterdir()))
    except OSError:
        return 0


def threads(pid: int) -> int:
    """Of a process; 0 where the system does not tell."""
    found = _THREADS.search(_text(pid, "status"))
    return int(found.group(1)) if found else 0


def of_home(home: Path) -> list[int]:
    """The running processes that were started with this `MONKEYCODE_HOME`, ourselves left out."""
    mark = b"\0MONKEYCODE_HOME=" + os.fsencode(home) + b"\0"
    found = []
    for pid in _all():
        with contextlib.suppress(OSError):
            if pid != os.getpid() and mark in b"\0" + (_PROC / str(pid) / "environ").read_bytes():
                found.append(pid)
    return found


def wait_gone(home: Path, within_s: float) -> list[int]:
    """Wait until the processes of this home have left; those that have not."""
    until = time.monotonic() + within_s
    while (left := of_home(home)) and time.monotonic() < until:
        time.sleep(_POLL_S)
    return left


def zombies(parents: list[int]) -> int:
    """Children of these processes that have ended and were not taken note of."""
    n = 0
    for pid in _all():
        status = _text(pid, "status")
        state, parent = _STATE.search(status), _PARENT.search(status)
        n += bool(state and parent and state.group(1) == "Z" and int(parent.group(1)) in parents)
    return n


def kill(pid: int) -> None:
    """Without a word of warning."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM if os.name == "nt" else signal.SIGKILL)


def _all() -> Iterator[int]:
    with contextlib.suppress(OSError):
        yield from (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())


def _text(pid: int, name: str) -> str:
    try:
        return (_PROC / str(pid) / name).read_text(errors="replace")
    except OSError:
        return ""
