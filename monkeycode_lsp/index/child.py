"""The index process as its server sees it: started, heard, started again when it dies, and gone when it is not wanted.

Invariant: whatever it does, nobody waits for it but a thread of ours.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence

import msgspec

from monkeycode_lsp.index import wire

logger = logging.getLogger(__name__)

WORKER = (sys.executable, "-P", "-m", "monkeycode_lsp.index.worker")
"""`-P`: what lies in the user's working folder is never imported."""
PAUSES_S = (0.5, 2.0, 10.0, 60.0)
"""Before it is started again.  It skips a file on which it has died twice."""
_FAREWELL_S = 1.0


class Child:
    """One process at a time, on threads of ours."""

    # The mutable state is the queue of what is to be said, and the process; the latter changes in `_work` only.

    def __init__(
        self,
        begin: Callable[[], wire.Begin],
        heard: Callable[[wire.FromWorker], None],
        *,
        command: Sequence[str] = WORKER,
        pauses_s: Sequence[float] = PAUSES_S,
    ) -> None:
        """`begin` is called on a thread of ours, once, and so is `heard`, with each message."""
        self._begin = begin
        self._heard = heard
        self._command = command
        self._pauses_s = pauses_s
        self._says: queue.SimpleQueue[wire.ToWorker | _Ended | None] = queue.SimpleQueue()
        self._process: subprocess.Popen[bytes] | None = None
        self.gone = threading.Event()
        """It is not there and will not come back."""
        self._farewell: Callable[[], None] = _nothing
        self._thread = threading.Thread(target=self._work, name="index process", daemon=True)

    @property
    def pid(self) -> int | None:
        process = self._process
        return process.pid if process is not None else None

    def start(self) -> None:
        """Returns at once."""
        self._thread.start()

    def say(self, message: wire.ToWorker) -> None:
        """Returns at once; a process that is not there never hears it."""
        self._says.put(message)

    def end(self, gone: Callable[[], None]) -> None:
        """Returns at once; `gone` is called on a thread of ours when it is over."""
        self._farewell = gone
        self._says.put(None)

    def _work(self) -> None:
        """The thread."""
        try:
            begin = self._begin()
            status = self._one_life(begin)
            for pause_s in self._pauses_s:
                if status is None or not self._pause(pause_s):
                    break
                logger.info("The index process ended with status %s; it is started again.", status)
                status = self._one_life(begin)
        except (OSError, ValueError) as exc:  # there is no such program, or no such folder can be
            self._heard(wire.State("off", why=f"its process cannot be started ({exc})"))
        else:
            self._heard(wire.State("off", why="closed" if status is None else f"its process has died again and again (status {status})"))
        self.gone.set()
        self._farewell()

    def _one_life(self, begin: wire.Begin) -> int | None:
        """Its exit status; None: it is not wanted any more."""
        process = self._process = _started(self._command)
        threading.Thread(target=self._listen, args=(process,), name="index messages", daemon=True).start()
        with process:
            _write(process, begin)
            while True:
                match self._says.get():
                    case None:
                        _end(process)
                        return None
                    case _Ended(of=who):
                        if who is process:
                            return process.wait()
                    case message:
                        _write(process, message)

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        """On a thread of its own."""
        if process.stdout is not None:
            for line in process.stdout:
                with contextlib.suppress(msgspec.MsgspecError):
                    self._heard(msgspec.json.decode(line, type=wire.FromWorker))
        self._says.put(_Ended(process))

    def _pause(self, pause_s: float) -> bool:
        """Whether it is still wanted after that."""
        self._heard(wire.State("off", why="its process has died, and is started again soon"))
        with contextlib.suppress(queue.Empty):
            while self._says.get(timeout=pause_s) is not None:
                pass
            return False
        return True


class _Ended:
    """A process has closed its standard output."""

    __match_args__ = ("of",)

    def __init__(self, of: subprocess.Popen[bytes]) -> None:
        self.of = of


def _started(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """In a group of its own, so that a terminal's Ctrl-C is not for it; and behind every other program."""
    if sys.platform == "win32":
        flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW | subprocess.IDLE_PRIORITY_CLASS
        return subprocess.Popen(  # noqa: S603 - the command is ours
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, creationflags=flags
        )
    return subprocess.Popen(  # noqa: S603 - the command is ours
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, process_group=0
    )


def _write(process: subprocess.Popen[bytes], message: wire.ToWorker) -> None:
    if process.stdin is not None:
        with contextlib.suppress(OSError):  # it has died; its end is told by who listens
            process.stdin.write(msgspec.json.encode(message) + b"\n")
            process.stdin.flush()


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    try:
        process.wait(_FAREWELL_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _nothing() -> None:
    """Nobody waits."""
