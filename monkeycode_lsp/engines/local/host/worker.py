"""The process that owns the model: `python -m monkeycode_lsp.engines.local.host.worker --socket PATH --options JSON`.

It is nobody's: whoever started it may go.  Its descriptor 1 closes (becomes descriptor 2) as soon as clients can connect; if
they never can, the system's number of the error and its words are written there first.  Whatever the library prints lands on stderr, which is its log.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from monkeycode_lsp.engines.local import wire
from monkeycode_lsp.engines.local.decoder import Decoder, LoadError, Options
from monkeycode_lsp.engines.local.host import jsontext, logfile
from monkeycode_lsp.engines.local.host.host import Host, Limits
from monkeycode_lsp.engines.local.host.registry import Entry, Note
from monkeycode_lsp.engines.local.host.rendezvous import CANNOT_LISTEN, Door, Place
from monkeycode_lsp.engines.local.host.service import Service
from monkeycode_lsp.engines.local.host.startlock import StartLock

if sys.platform != "win32":
    import resource

CANNOT_LOAD = 3
"""Exit status after `LoadFailed`; beside it and `CANNOT_LISTEN` any other that is not 0 is a crash."""
_LOG_CHECK_S = 60.0

logger = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None, *, make_decoder: Callable[[Options], Decoder] | None = None) -> int:
    """Run one of the three modes and return the exit status."""
    args = _modes(parser()).parse_args(argv)
    options = jsontext.load(args.options, Options) if args.options else Options(model=Path())
    settle(options)

    def make() -> Decoder:
        return (make_decoder or _llama_decoder)(options)

    if args.build_info or args.self_test:
        return _check(make, load=args.self_test)
    return serve(
        lambda door, entry, limits: Service(make_decoder=make, door=door, entry=entry, limits=limits, overdue=lambda: os._exit(0)), args
    )


class Work(Protocol):
    """What a process of ours does."""

    host: Host

    def run(self) -> bool:
        """All of it, until it is time to leave.  False: what it needs could not be loaded."""
        ...

    def close(self) -> None:
        """Let all clients go."""
        ...


def parser() -> argparse.ArgumentParser:
    """What every process understands that serves clients; where they connect is still to be added."""
    limits = Limits()
    made = argparse.ArgumentParser(prog="monkeycode engine process", description="Owns one model and answers over a private socket.")
    made.add_argument("--options", default="", help="how the model is loaded, as JSON")
    made.add_argument("--note", default="", help="what others may know without asking, as JSON")
    made.add_argument("--loopback", action="store_true", help="listen on 127.0.0.1 and write port and token to the socket's path")
    made.add_argument("--linger", type=float, default=limits.linger_s, help="seconds to stay after the last client has gone")
    made.add_argument("--idle", type=float, default=limits.idle_s, help="seconds to stay without an ask; 0: for ever")
    return made


def _modes(made: argparse.ArgumentParser) -> argparse.ArgumentParser:
    mode = made.add_mutually_exclusive_group(required=True)
    mode.add_argument("--socket", type=Path, help="where clients connect; made here, removed at the end")
    mode.add_argument("--self-test", action="store_true", help="load the model, decode a few tokens, say how it went, leave")
    mode.add_argument("--build-info", action="store_true", help="say how llama.cpp was built, leave")
    return made


def settle(options: Options) -> None:
    """Make this process a quiet one: no core files of a gigabyte, no dying with a terminal's Ctrl-C, behind other programs."""
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        if sys.platform != "win32":
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if options.nice:
                os.nice(options.nice)
        if sys.platform == "linux" and options.affinity:
            os.sched_setaffinity(0, options.affinity)
    except (OSError, ValueError) as exc:
        logger.warning("The process cannot step back as it was told: %s.", exc)


def _llama_decoder(options: Options) -> Decoder:
    try:
        from monkeycode_lsp.engines.local.llama.decoder import LlamaDecoder  # noqa: PLC0415 - heavy, and may be missing
    except (ImportError, OSError, RuntimeError, AttributeError) as exc:
        # Missing, of another version, or built against libraries that are not here.
        raise LoadError("runtime", str(exc)) from exc
    return LlamaDecoder(options)


def _check(make: Callable[[], Decoder], *, load: bool) -> int:
    """Say what a client would be told, as lines of JSON on what was standard output."""
    with os.fdopen(_claim_stdout(), "wb", buffering=0) as out:

        def say(message: wire.FromWorker) -> None:
            out.write(msgspec.json.encode(message) + b"\n")

        try:
            decoder = make()
            say(wire.Starting(decoder.build()))
            if load:
                say(decoder.load())
        except LoadError as exc:
            say(wire.LoadFailed(exc.kind, exc.message))
            return CANNOT_LOAD
        decoder.close()
        return 0


def serve(make: Callable[[Door, Entry, Limits], Work], args: argparse.Namespace) -> int:
    """Do the work behind a door of its own, and return the exit status."""
    stdout = _claim_stdout()
    place = Place(args.socket)
    try:
        # Under the lock of whoever starts us: nobody else is about to listen here.
        door = Door(place.socket, loopback=args.loopback)
        note = jsontext.load(args.note, Note)
        try:
            entry = Entry(place, msgspec.structs.replace(note, pid=os.getpid(), since=time.time()))
        except OSError:
            door.close()
            raise
    except OSError as exc:
        os.write(stdout, f"{exc.errno or 0} {exc.strerror or exc}".encode(errors="replace"))
        return CANNOT_LISTEN
    work = make(door, entry, Limits(linger_s=args.linger, idle_s=args.idle))
    _await_signal(work.host.leave)
    if note.log:
        threading.Thread(target=_bound_log, name="log", daemon=True).start()
    # Only now: its end tells whoever started us that clients can connect.
    os.close(stdout)
    try:
        return 0 if work.run() else CANNOT_LOAD
    finally:
        work.close()
        _clear_lock(place)


def _clear_lock(place: Place) -> None:
    """Whoever started us may have been killed with the lock in his hands; its file would lie about for ever."""
    with contextlib.suppress(OSError):
        if place.lock.exists() and (held := StartLock.take(place.lock)) is not None:
            held.release()


def _await_signal(leave: Callable[[], None]) -> None:
    """Leave on SIGTERM.  A thread of its own waits for it: the main one may be inside a native call for long."""
    if sys.platform == "win32":
        return  # there it ends the process at once
    signals = {signal.SIGTERM, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)

    def wait() -> None:
        signal.sigwait(signals)
        leave()

    threading.Thread(target=wait, name="signals", daemon=True).start()


def _bound_log() -> None:
    while True:
        time.sleep(_LOG_CHECK_S)
        logfile.bound(2)


def _claim_stdout() -> int:
    """From now on descriptor 1 is descriptor 2, for C code too; returns what it was."""
    original = os.dup(1)
    os.dup2(2, 1)
    return original


if __name__ == "__main__":
    raise SystemExit(main())
