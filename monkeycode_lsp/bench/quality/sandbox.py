"""Runs a program that a model wrote, in a process with limits; never in our own.

Time, memory, file sizes and open files are limited; the process has a session, an empty folder and, where the
system lets it, no network and a process table of its own.  When it is over, its whole group is killed.
"""

from __future__ import annotations

import contextlib
import enum
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from monkeycode_lsp.errors import MonkeyCodeError

WALL_S = 30.0
"""Much more than the limit of processor time: the machine may be busy."""
_CHILD = Path(__file__).with_name("sandbox_child.py")
_MARGIN = 64


class Verdict(enum.Enum):
    """How a program ended."""

    PASSED = "passed"
    """It ran to its last line."""
    FAILED = "failed"
    """It raised, left early, or ran into a limit."""
    LATE = "late"
    """It had to be killed when its time was over."""


def check() -> None:
    """Raises where no limits can be set."""
    if sys.platform == "win32":
        raise MonkeyCodeError(
            "Programs that a model wrote are run with limits of time and memory only, and Windows offers none to Python.",
            remedy="Measure in WSL, or without tests: `--only gold,crossfile`.",
        )


def run(program: str, *, wall_s: float = WALL_S) -> Verdict:
    """Blocking; safe to call from several threads."""
    word = secrets.token_hex(16)
    reader, writer = os.pipe()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="monkeycode-candidate-", ignore_cleanup_errors=True) as folder,
            tempfile.TemporaryFile() as text,
        ):
            text.write(f"{word}\n{program}".encode("utf-8", errors="replace"))
            text.seek(0)
            in_time = _run(text.fileno(), writer, folder, wall_s)
        os.close(writer)
        writer = -1
        os.set_blocking(reader, False)
        with contextlib.suppress(BlockingIOError):  # somebody who got away still holds the other end
            if os.read(reader, len(word) + _MARGIN) == word.encode():
                return Verdict.PASSED
        return Verdict.FAILED if in_time else Verdict.LATE
    finally:
        os.close(reader)
        if writer >= 0:
            os.close(writer)


def _run(text: int, writer: int, folder: str, wall_s: float) -> bool:
    """Whether it ended by itself."""
    process = subprocess.Popen(  # noqa: S603 - our own script
        [sys.executable, "-I", "-S", "-B", str(_CHILD), str(writer)],
        stdin=text,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(writer,),
        cwd=folder,
        env={"LANG": "C.UTF-8", "HOME": folder, "TMPDIR": folder},
        start_new_session=True,
    )
    try:
        process.wait(wall_s)
    except subprocess.TimeoutExpired:
        return False
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # the group has ended by itself
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return True
