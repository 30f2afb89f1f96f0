"""The process that keeps a llama-server for all clients: `python -m monkeycode_lsp.engines.local.managed.worker --socket PATH …`.

Clients find it like any engine process and are told where its server listens; their asks go there.  It neither sees nor repeats
them: a client says when an ask begins and how it ended, so that this process knows whether anybody works and what was done.
It dies as its server dies, so that clients bury both alike.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from monkeycode_lsp.engines.local import abilities, wire
from monkeycode_lsp.engines.local.decoder import Options, as_text
from monkeycode_lsp.engines.local.host import jsontext, worker
from monkeycode_lsp.engines.local.host.host import Client, Host, Limits
from monkeycode_lsp.engines.local.host.registry import Entry
from monkeycode_lsp.engines.local.host.rendezvous import Door
from monkeycode_lsp.engines.local.managed import command as managed_command
from monkeycode_lsp.engines.local.managed.command import About
from monkeycode_lsp.engines.local.managed.process import Address, End, News, ServerProcess
from monkeycode_lsp.engines.local.managed.server import CANNOT_START
from monkeycode_lsp.engines.local.managed.tally import Tally
from monkeycode_lsp.errors import ModelError
from monkeycode_lsp.models import gguf
from monkeycode_lsp.prompt import Markers

_POLL_S = 0.05


def main(argv: Sequence[str] | None = None) -> int:
    """Run it and return the exit status."""
    parser = worker.parser()
    parser.add_argument("--socket", type=Path, required=True, help="where clients connect; made here, removed at the end")
    parser.add_argument("--program", default="", help="the llama-server to run; empty: the xllamacpp package")
    args = parser.parse_args(argv)
    options = jsontext.load(args.options, Options)
    worker.settle(options)
    return worker.serve(lambda door, entry, limits: Keeper(options, args.program, door=door, entry=entry, limits=limits), args)


class Keeper:
    """Keeps one llama-server.  See `Served`."""

    def __init__(self, options: Options, program: str, *, door: Door, entry: Entry, limits: Limits) -> None:
        # The mutable state is the server and its address, which the main thread sets, and what has come from it: news are
        # read by the main thread only, None among them says that it is time to leave.
        self._options = options
        self._program = program
        self._entry = entry
        self._header = _header(options.model)
        self._news: queue.SimpleQueue[News | None] = queue.SimpleQueue()
        self._server: ServerProcess | None = None
        self._address = ""
        self._has_gpu = False
        self._tally: Tally[Client] = Tally(time.monotonic)
        self.host = Host(door=door, entry=entry, served=self, limits=limits, overdue=lambda: os._exit(0))

    def run(self) -> bool:
        """Wait for a client, start the server, keep it until it is time to leave.  False: it could not load the model."""
        self.host.start()
        if not self.host.wait_for_client():
            return True
        wanted = managed_command.server(self._options, n_layers=(self._header.n_layers or 0) if self._header else 0)
        try:
            self._server = ServerProcess(managed_command.command(wanted, self._program), self._news)
        except OSError as exc:
            self.host.tell(wire.LoadFailed("runtime", exc.strerror or str(exc)))
            return False
        if self._program:
            # It does not say what it was built for, so it may use a GPU.
            self._is_built(About(version="", build="", system="", gpu=True))
        while (news := self._news.get()) is not None:
            match news:
                case About():
                    self._is_built(news)
                case Address() if not self._address:
                    self._serve_at(self._server, news.url)
                case End():
                    return self._has_ended(self._server, news.status)
        return True

    def close(self) -> None:
        """Let all clients go, and end the server."""
        self.host.ending()
        try:
            if self._server is not None:
                self._server.kill()
        finally:
            self.host.close()

    def hear(self, client: Client, message: wire.Work) -> None:
        """See `Served.hear`."""
        match message:
            case wire.Began():
                self._tally.began(client, message.id)
            case wire.Ended():
                self._tally.ended(client, message)
            case _:
                raise wire.FrameError("it asks the host of a server")

    def forget(self, client: Client) -> None:
        """See `Served.forget`."""
        self._tally.forget(client)

    def idle_since(self) -> float | None:
        """See `Served.idle_since`."""
        return self._tally.idle_since if self._address else None

    def describe(self) -> wire.Status:
        """See `Served.describe`."""
        name, running, totals = self._entry.note.name, self._tally.n_running, self._tally.totals
        return wire.Status(pid=0, name=name, since=0.0, clients=0, running=running, totals=totals, address=self._address)

    def end(self) -> None:
        """See `Served.end`."""
        self._news.put(None)

    def _is_built(self, about: About) -> None:
        self._has_gpu = about.gpu
        build = wire.Build(about.version, about.system, tuple(sorted(abilities.read(about.system).gpu_backends)), about.gpu)
        # Also noted: whoever started us may not be connected yet when we die of what comes now.
        self._entry.update(msgspec.structs.replace(self._entry.note, build=build))
        self.host.tell(wire.Starting(build))

    def _serve_at(self, server: ServerProcess, url: str) -> None:
        """It listens a while before it has loaded the model; then clients may come."""
        while not server.is_healthy(url):
            with contextlib.suppress(queue.Empty):
                self._news.put(self._news.get(timeout=_POLL_S))
                return  # it has ended, or it is time to leave
        ready = self._ready()
        self._tally.start()
        self._address = url
        self._entry.update(
            msgspec.structs.replace(self._entry.note, name=f"{ready.name} {ready.quantization}".strip(), on_gpu=ready.on_gpu)
        )
        self.host.tell(wire.Serving(url, server.key))
        self.host.tell(ready)

    def _ready(self) -> wire.Ready:
        """What the file's header says; the server says the rest to whoever asks it."""
        options, header = self._options, self._header
        on_gpu = self._has_gpu and options.gpu_layers != 0
        return wire.Ready(
            name=(header.name if header else "") or as_text(options.model.stem),
            architecture=header.architecture if header else "",
            context_tokens=options.context_tokens,
            markers=Markers(),
            add_bos=False,
            on_gpu=on_gpu,
            n_layers=(header.n_layers or 0) if header else 0,
            n_parameters=0,
            quantization=header.file_type if header else "",
            n_slots=options.slots,
        )

    def _has_ended(self, server: ServerProcess, status: int) -> bool:
        if self._address:
            with contextlib.suppress(OSError):
                print(f"The server ended with status {status}.", file=sys.stderr, flush=True)  # noqa: T201 - our log
        if self._address or status < 0:
            _die_of(status)
        if status == CANNOT_START:
            failed = wire.LoadFailed("runtime", server.last_words)
        elif server.words_of_memory:
            failed = wire.LoadFailed("memory", server.words_of_memory)
        else:
            failed = wire.LoadFailed("model", server.last_words)
        self.host.tell(failed)
        return False


def _header(model: Path) -> gguf.Header | None:
    try:
        return gguf.read(model)
    except ModelError:
        return None  # the server will say what is wrong with it


def _die_of(status: int) -> None:
    """End as the server ended, without a farewell: whoever finds what is left knows that it was a crash."""
    if status < 0:
        faulthandler.disable()
        number = signal.Signals(-status)
        with contextlib.suppress(OSError, ValueError):  # nobody handles SIGKILL
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
        threading.Event().wait(_POLL_S)
    os._exit(status % 256 or 1)


if __name__ == "__main__":
    raise SystemExit(main())
