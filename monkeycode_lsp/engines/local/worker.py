"""The process that owns the model: `python -m monkeycode_lsp.engines.local.worker --socket PATH --model FILE`.

Its descriptor 1 closes (becomes descriptor 2) as soon as clients can connect; whatever the library
prints lands on stderr.  With `--with-parent` it ends when its stdin does, however its parent died.
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
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from monkeycode_lsp.engines.local import rendezvous, wire
from monkeycode_lsp.engines.local.decoder import Decoder, LoadError, Options
from monkeycode_lsp.engines.local.service import Limits, Service

if sys.platform != "win32":
    import resource

CANNOT_LOAD = 3
"""Exit status after `LoadFailed`; any other that is not 0 is a crash."""


def main(argv: Sequence[str] | None = None, *, make_decoder: Callable[[Options], Decoder] | None = None) -> int:
    """Run one of the three modes and return the exit status."""
    args = _parser().parse_args(argv)
    _settle()
    options = Options(
        model=args.model,
        gpu_layers=args.gpu_layers,
        gpu_share=args.gpu_share,
        extra_buffers=not args.no_extra_buffers,
        context_tokens=args.context_tokens,
        batch_tokens=args.batch_tokens,
        threads=args.threads,
        flash_attention=not args.no_flash_attention,
        mmap=not args.no_mmap,
    )

    def make() -> Decoder:
        return (make_decoder or _llama_decoder)(options)

    if args.build_info or args.self_test:
        return _check(make, load=args.self_test)
    return _serve(make, args)


def _parser() -> argparse.ArgumentParser:
    defaults = Options(model=Path())
    limits = Limits()
    parser = argparse.ArgumentParser(prog="monkeycode engine process", description="Owns one model and answers over a private socket.")
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--socket", type=Path, help="where clients connect; made here, removed at the end")
    mode.add_argument("--self-test", action="store_true", help="load the model, decode a few tokens, say how it went, leave")
    mode.add_argument("--build-info", action="store_true", help="say how llama.cpp was built, leave")
    parser.add_argument("--loopback", action="store_true", help="listen on 127.0.0.1 and write port and token to the socket's path")
    parser.add_argument("--with-parent", action="store_true", help="leave when standard input is closed")
    parser.add_argument("--linger", type=float, default=limits.linger_s, help="seconds to stay after the last client has gone")
    parser.add_argument("--idle", type=float, default=limits.idle_s, help="seconds to stay without an ask; 0: for ever")
    parser.add_argument("--model", type=Path, default=defaults.model)
    parser.add_argument("--gpu-layers", type=int, default=defaults.gpu_layers)
    parser.add_argument("--gpu-share", type=float, default=defaults.gpu_share)
    parser.add_argument("--no-extra-buffers", action="store_true")
    parser.add_argument("--context-tokens", type=int, default=defaults.context_tokens)
    parser.add_argument("--batch-tokens", type=int, default=defaults.batch_tokens)
    parser.add_argument("--threads", type=int, default=defaults.threads)
    parser.add_argument("--no-flash-attention", action="store_true")
    parser.add_argument("--no-mmap", action="store_true")
    return parser


def _settle() -> None:
    """Make this process a quiet child: no core files of a gigabyte, no dying with the terminal's Ctrl-C."""
    logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(message)s", level=logging.WARNING)
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _llama_decoder(options: Options) -> Decoder:
    try:
        from monkeycode_lsp.engines.local.llama import LlamaDecoder  # noqa: PLC0415 - heavy, and may be missing
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


def _serve(make: Callable[[], Decoder], args: argparse.Namespace) -> int:
    listener, token = rendezvous.listen(args.socket, loopback=args.loopback)

    def leave(*_: object) -> None:
        # In the middle of a native call there is no other way out.
        rendezvous.remove(args.socket)
        os._exit(0)

    signal.signal(signal.SIGTERM, leave)
    if args.with_parent:
        threading.Thread(target=_watch_parent, args=(leave,), name="parent", daemon=True).start()
    # Only now: its end tells the parent that clients can connect.
    os.close(_claim_stdout())
    service = Service(make_decoder=make, listener=listener, token=token, limits=Limits(linger_s=args.linger, idle_s=args.idle))
    try:
        return 0 if service.run() else CANNOT_LOAD
    finally:
        service.close()
        rendezvous.remove(args.socket)


def _watch_parent(leave: Callable[[], None]) -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 1024):
            pass
    leave()


def _claim_stdout() -> int:
    """From now on descriptor 1 is descriptor 2, for C code too; returns what it was."""
    original = os.dup(1)
    os.dup2(2, 1)
    return original


if __name__ == "__main__":
    raise SystemExit(main())
