"""The real engine process around a decoder that does what it is told, for tests: `stub_worker.py BEHAVIOUR …`.

BEHAVIOUR is JSON; see `Behaviour`.  What happens is told as lines of JSON to the named pipe `events`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Literal

import msgspec

from monkeycode_lsp.engines.local import worker
from monkeycode_lsp.engines.local.assembly import Assembler
from monkeycode_lsp.engines.local.decoder import GenerationError, LoadError
from monkeycode_lsp.engines.local.wire import Build, Delta, Done, Ready
from monkeycode_lsp.prompt import Markers


class Behaviour(msgspec.Struct, frozen=True):
    events: str = ""
    gpu: bool = False
    dies: str = ""
    """Signal at load …"""
    dies_while: Literal["always", "on_gpu", "more_than_half_on_gpu", "extra_buffers"] = "always"
    load_error: str = ""
    hangs: bool = False
    """At load."""
    prints: int = 0
    """Bytes written to descriptor 1 while it loads."""
    pieces: tuple[str, ...] = ("61", "62", "63")
    """The answer's tokens, as hex."""
    idle_s: float = 0.0
    mode: Literal["answers", "endless", "stalls", "deaf", "overflow", "breaks", "leaves"] = "answers"
    """Of the first ask of this process; the others are answered."""
    pause_s: float = 0.0
    """Between two tokens."""


class StubDecoder:
    def __init__(self, options, behaviour):
        self.options = options
        self.behaviour = behaviour
        self.inside = False
        self.n_asks = 0

    def tell(self, what, **more):
        if self.behaviour.events:
            with Path(self.behaviour.events).open("ab") as pipe:
                pipe.write(msgspec.json.encode({"what": what, **more}) + b"\n")

    def build(self):
        return Build(version="0", system="CPU : STUB = 1", accelerators=(), gpu=self.behaviour.gpu)

    def load(self):
        self.tell("load", extra_buffers=self.options.extra_buffers, gpu_layers=self.options.gpu_layers, gpu_share=self.options.gpu_share)
        os.write(1, b"x" * self.behaviour.prints)
        print("Python prints too")
        on_gpu = self.behaviour.gpu and self.options.gpu_layers != 0
        doomed = {
            "always": True,
            "on_gpu": on_gpu,
            "more_than_half_on_gpu": on_gpu and self.options.gpu_share > 0.5,
            "extra_buffers": self.options.extra_buffers,
        }[self.behaviour.dies_while]
        if self.behaviour.dies and doomed:
            os.kill(os.getpid(), getattr(signal, self.behaviour.dies))
        if self.behaviour.hangs:
            threading.Event().wait()
        if self.behaviour.load_error:
            raise LoadError("model", self.behaviour.load_error)
        return Ready("stub", "stub", 4096, Markers(), add_bos=False, on_gpu=on_gpu, n_layers=1, n_parameters=1, quantization="Q0")

    def generate(self, ask, is_cancelled):
        if self.inside:
            os._exit(70)
        self.inside = True
        self.n_asks += 1
        mode = self.behaviour.mode if self.n_asks == 1 else "answers"
        self.tell("begin", session=ask.session)
        try:
            yield from self.answer(ask, is_cancelled, mode)
        finally:
            self.inside = False

    def answer(self, ask, is_cancelled, mode):
        if mode == "overflow":
            raise GenerationError("overflow", "Too long.", limit_tokens=4096)
        if mode == "breaks":
            raise ZeroDivisionError
        if mode == "leaves" and not (mark := Path(self.behaviour.events + ".left")).exists():
            mark.touch()
            os._exit(0)
        if mode == "deaf":
            threading.Event().wait()
        pause = threading.Event()
        assembler = Assembler(ask.stop)
        pieces = list(self.behaviour.pieces)
        while mode == "stalls" or pieces:
            if is_cancelled():
                self.tell("cancelled", session=ask.session)
                yield Done(ask.id, "cancelled", reused=3, read=2)
                return
            pause.wait(self.behaviour.pause_s or (0.002 if mode in {"endless", "stalls"} else 0))
            if mode == "stalls":
                continue
            if text := assembler.feed(bytes.fromhex(pieces[0] if mode == "endless" else pieces.pop(0))):
                yield Delta(ask.id, text, 1, -0.5)
        if rest := assembler.finish():
            yield Delta(ask.id, rest, 0, 0.0)
        yield Done(ask.id, "stop", reused=3, read=2, generated=len(self.behaviour.pieces))

    def close(self):
        self.tell("close")


def main():
    behaviour = msgspec.json.decode(sys.argv[1], type=Behaviour)
    more = [f"--idle={behaviour.idle_s}"] if behaviour.idle_s else []
    return worker.main([*sys.argv[2:], *more], make_decoder=lambda options: StubDecoder(options, behaviour))


if __name__ == "__main__":
    raise SystemExit(main())
