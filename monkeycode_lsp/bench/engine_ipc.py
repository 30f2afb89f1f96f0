"""What the way between two processes costs a token: an engine process whose decoder has no model, only a clock.

Run as a worker with the worker's own arguments, it says the time at which each token left the decoder; the
window notes when it had it.  Between the two lie the engine process's own loop, the socket and the client.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from contextlib import aclosing
from pathlib import Path

from monkeycode_lsp.config import Local
from monkeycode_lsp.domain import Plain, Priority, Prompt
from monkeycode_lsp.engines.local.decoder import Step
from monkeycode_lsp.engines.local.host import worker
from monkeycode_lsp.engines.local.native import NativeEngine
from monkeycode_lsp.engines.local.wire import Build, Delta, Done, Generate, Ready, Totals
from monkeycode_lsp.prompt import Markers

COMMAND = (sys.executable, "-P", "-m", "monkeycode_lsp.bench.engine_ipc")
_TOKEN_S = 0.004
"""About a GPU's pace; at a slower one processors fall into a deeper sleep, which is not our cost."""


class Clock:
    """See `Decoder`: each token of an answer is the time, in nanoseconds, at which it was there."""

    def __init__(self) -> None:
        # The mutable state is the asks that are not answered, each with the number of tokens left to say.
        self._left: dict[Hashable, tuple[Generate, Callable[[], bool], int]] = {}
        self._pause = threading.Event()
        self.totals = Totals()

    @property
    def busy(self) -> bool:
        return bool(self._left)

    def build(self) -> Build:
        return Build(version="0", system="a clock", accelerators=(), gpu=False)

    def load(self) -> Ready:
        return Ready("clock", "clock", 4096, Markers(), add_bos=False, on_gpu=False, n_layers=1, n_parameters=1, quantization="")

    def begin(self, job: Hashable, ask: Generate, is_cancelled: Callable[[], bool]) -> None:
        self._left[job] = (ask, is_cancelled, ask.max_tokens)

    def step(self, is_urgent: Callable[[Priority], bool]) -> list[Step]:
        del is_urgent
        self._pause.wait(_TOKEN_S)
        steps: list[Step] = []
        for job, (ask, is_cancelled, n_left) in list(self._left.items()):
            if is_cancelled() or not n_left:
                del self._left[job]
                steps.append(Step(job, Done(ask.id, "cancelled" if n_left else "length", generated=ask.max_tokens - n_left)))
            else:
                self._left[job] = (ask, is_cancelled, n_left - 1)
                steps.append(Step(job, Delta(ask.id, str(time.perf_counter_ns()), 1, 0.0)))
        return steps

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]

    def drop(self, job: Hashable) -> None:
        self._left.pop(job, None)

    def close(self) -> None:
        self._left.clear()


async def one_way_ms(model: Path, n: int) -> list[float]:
    """From the decoder to the window, for each of `n` tokens.  `model` is looked at, and not loaded."""
    engine = NativeEngine(settings=Local(linger_seconds=0), model=model, notify=lambda _message: None, command=COMMAND)
    times: list[float] = []
    try:
        async with aclosing(engine.stream(Prompt(segments=(Plain("x"),), prefix="", suffix="", max_tokens=n))) as stream:
            async for chunk in stream:
                now = time.perf_counter_ns()
                if chunk.finish is None:
                    times.append((now - int(chunk.text)) / 1e6)
    finally:
        await engine.aclose()
    return times


if __name__ == "__main__":
    raise SystemExit(worker.main(make_decoder=lambda _options: Clock()))
