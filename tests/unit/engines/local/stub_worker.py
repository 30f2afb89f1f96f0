"""The real engine process around a decoder that does what it is told, for tests: `stub_worker.py BEHAVIOUR …`.

BEHAVIOUR is JSON; see `Behaviour`.  What happens is told as lines of JSON to the named pipe `events`.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
from pathlib import Path
from typing import Literal

import msgspec

from monkeycode_lsp.engines.local.batch.assembly import Assembler
from monkeycode_lsp.engines.local.decoder import LoadError, Step
from monkeycode_lsp.engines.local.host import worker
from monkeycode_lsp.engines.local.wire import Build, Delta, Done, Failed, Ready, Totals
from monkeycode_lsp.prompt import Markers


class Behaviour(msgspec.Struct, frozen=True):
    events: str = ""
    gpu: bool = False
    dies: str = ""
    """Signal at load …"""
    dies_while: Literal["always", "on_gpu", "more_than_half_on_gpu", "extra_buffers"] = "always"
    load_error: str = ""
    """`{model}` in it is the model's path."""
    load_error_kind: Literal["runtime", "model", "memory", "internal"] = "model"
    hangs: bool = False
    """At load."""
    prints: int = 0
    """Bytes written to descriptor 1 while it loads."""
    pieces: tuple[str, ...] = ("61", "62", "63")
    """The answer's tokens, as hex."""
    idle_s: float = 0.0
    mode: Literal["answers", "endless", "stalls", "reads", "deaf", "overflow", "grammar", "breaks", "leaves"] = "answers"
    """Of the first ask of this process; the others are answered."""
    once: bool = False
    """Only in the first process."""
    full: bool = False
    """No file can grow, as on a disk that is full."""
    pause_s: float = 0.0
    """Between two tokens."""


class Running:
    """One ask at work."""

    def __init__(self, ask, is_cancelled, mode, behaviour):
        self.ask = ask
        self.is_cancelled = is_cancelled
        self.mode = mode
        self.pieces = list(behaviour.pieces)
        self.assembler = Assembler(ask.stop)


class StubDecoder:
    def __init__(self, options, behaviour):
        self.options = options
        self.behaviour = behaviour
        self.inside = False
        self.n_asks = 0
        self.running = {}

    @property
    def busy(self):
        return bool(self.running)

    @property
    def totals(self):
        return Totals(asks=self.n_asks, generated=3 * self.n_asks)

    def tell(self, what, **more):
        if self.behaviour.events:
            with Path(self.behaviour.events).open("ab") as pipe:
                pipe.write(json.dumps({"what": what, **more}).encode() + b"\n")

    def build(self):
        return Build(version="0", system="CPU : STUB = 1", accelerators=(), gpu=self.behaviour.gpu)

    def load(self):
        options = self.options
        told = {"extra_buffers": options.extra_buffers, "gpu_layers": options.gpu_layers, "gpu_share": options.gpu_share}
        self.tell(
            "load",
            pid=os.getpid(),
            context_tokens=options.context_tokens,
            threads=options.threads,
            model=str(options.model),
            nice=os.nice(0),
            **told,
        )
        os.write(1, b"x" * self.behaviour.prints)
        print("Python prints too")
        on_gpu = self.behaviour.gpu and options.gpu_layers != 0
        doomed = {
            "always": True,
            "on_gpu": on_gpu,
            "more_than_half_on_gpu": on_gpu and options.gpu_share > 0.5,
            "extra_buffers": options.extra_buffers,
        }[self.behaviour.dies_while]
        if self.behaviour.dies and doomed:
            os.kill(os.getpid(), getattr(signal, self.behaviour.dies))
        if self.behaviour.hangs:
            threading.Event().wait()
        if self.behaviour.load_error:
            raise LoadError(self.behaviour.load_error_kind, self.behaviour.load_error.format(model=options.model))
        return Ready("stub", "stub", 4096, Markers(), add_bos=False, on_gpu=on_gpu, n_layers=1, n_parameters=1, quantization="Q0")

    def mode(self):
        self.n_asks += 1
        if self.n_asks > 1:
            return "answers"
        mark = Path(self.behaviour.events + ".once")
        if self.behaviour.once and mark.exists():
            return "answers"
        if self.behaviour.once:
            mark.touch()
        return self.behaviour.mode

    def begin(self, job, ask, is_cancelled):
        running = Running(ask, is_cancelled, self.mode(), self.behaviour)
        told = {"session": ask.session, "priority": int(ask.priority), "max_tokens": ask.max_tokens, "heal": ask.heal}
        self.tell("begin", grammar=ask.grammar, temperature=ask.sampling.temperature, draft=ask.draft, **told)
        self.running[job] = running

    def count(self, texts):
        return [len(text) for text in texts]

    def drop(self, job):
        if (run := self.running.pop(job, None)) is not None:
            self.tell("dropped", session=run.ask.session)

    def step(self, is_urgent):
        if self.inside:
            os._exit(70)
        self.inside = True
        steps = [Step(job, event) for job, run in list(self.running.items()) for event in self.advance(run, is_urgent)]
        for step in steps:
            if not isinstance(step.event, Delta):
                self.running.pop(step.job)
        self.inside = False
        return steps

    def advance(self, run, is_urgent):
        if run.is_cancelled() and run.mode != "deaf":
            self.tell("cancelled", session=run.ask.session)
            return [Done(run.ask.id, "cancelled", reused=3, read=2)]
        if run.mode in {"overflow", "grammar"}:
            return [Failed(run.ask.id, run.mode, "No.", limit_tokens=4096)]
        if run.mode == "breaks":
            run.mode = "answers"
            self.inside = False
            raise ZeroDivisionError
        if run.mode == "leaves":
            os.kill(os.getpid(), signal.SIGTERM)
            run.mode = "stalls"
        if run.mode == "deaf":
            threading.Event().wait()
        if run.mode == "reads":
            while not is_urgent(run.ask.priority):
                threading.Event().wait(0.002)
            self.tell("left", session=run.ask.session)
            run.mode = "answers"
            return []
        threading.Event().wait(self.behaviour.pause_s or (0.002 if run.mode in {"endless", "stalls"} else 0))
        if run.mode == "stalls":
            return []
        return self.speak(run)

    def speak(self, run):
        piece = run.pieces[0] if run.mode == "endless" else run.pieces.pop(0)
        text = run.assembler.feed(bytes.fromhex(piece))
        events = [Delta(run.ask.id, text, 1, -0.5)] if text else []
        if not run.pieces:
            rest = run.assembler.finish()
            events += [Delta(run.ask.id, rest, 0, 0.0)] if rest else []
            events.append(Done(run.ask.id, "stop", reused=3, read=2, generated=len(self.behaviour.pieces)))
        return events

    def close(self):
        self.tell("close", pid=os.getpid())


def main():
    behaviour = msgspec.json.decode(sys.argv[1], type=Behaviour)
    if behaviour.full:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    more = [f"--idle={behaviour.idle_s}"] if behaviour.idle_s else []
    return worker.main([*sys.argv[2:], *more], make_decoder=lambda options: StubDecoder(options, behaviour))


if __name__ == "__main__":
    raise SystemExit(main())
