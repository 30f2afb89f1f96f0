"""Runs one program inside limits; started by `sandbox`, as a script: it imports the standard library only, and never this package.

Reads a word and a program from standard input, and writes the word to the file descriptor of its argument if the
program ran to its end.  A program that leaves early, however, does not get so far.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys

_CPU_S = 10
_MEMORY_BYTES = 1 << 30
_FILE_BYTES = 1 << 20
_FILES = 64

_NEW_USER, _NEW_NETWORK, _NEW_PROCESSES = 0x10000000, 0x40000000, 0x20000000
_DIE_WITH_PARENT = 1
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_FORBIDDEN = ("socket.", "subprocess.", "shutil.", "ctypes.", "os.", "signal.pthread_kill", "pty.", "fcntl.", "webbrowser.")
_ALLOWED = frozenset({"os.listdir", "os.scandir", "os.walk", "os.fwalk"})


def main() -> None:
    """See above."""
    word, _, program = sys.stdin.read().partition("\n")
    out = int(sys.argv[1])
    _isolate()
    _limit()
    code = compile(program, "<candidate>", "exec")
    # This cannot be undone, so it comes last: from here on only what a pure function needs is allowed.
    sys.addaudithook(_refuse)
    exec(code, {"__name__": "__main__"})  # noqa: S102 - this is what the process is for
    os.write(out, word.encode())
    os._exit(0)  # whatever it has left running is of no interest


def _limit() -> None:
    for what, most in (
        (resource.RLIMIT_CPU, _CPU_S),
        (resource.RLIMIT_AS, _MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, _FILE_BYTES),
        (resource.RLIMIT_NOFILE, _FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        try:
            resource.setrlimit(what, (most, most))
        except (OSError, ValueError):
            continue  # this system has no such limit; time and the end of the group remain
    sys.setrecursionlimit(2_000)


def _isolate() -> None:
    """On Linux, where users may: no network, and a process table of its own, so that whatever is started ends with it."""
    if not sys.platform.startswith("linux"):
        return
    system = ctypes.CDLL(None, use_errno=True)
    if system.unshare(_NEW_USER | _NEW_NETWORK | _NEW_PROCESSES):
        return
    # The first process there is spared by the signals of limits, so it only waits; with it everything else ends.
    for _ in ("first", "second"):
        child = os.fork()
        if child:
            _, status = os.waitpid(child, 0)
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
        system.prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    """No protection against malice, which the limits are for: keeps honest mistakes away from the user's files."""
    if event == "open":
        flags = arguments[2]
        if isinstance(flags, int) and flags & _WRITES:
            raise PermissionError(event)
    elif event.startswith(_FORBIDDEN) and event not in _ALLOWED:
        raise PermissionError(event)


if __name__ == "__main__":
    main()
