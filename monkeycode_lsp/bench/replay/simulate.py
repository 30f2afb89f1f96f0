"""Replays a whole trace on a clock of its own, against a backend that knows the future with probability q.

The product is the real pipeline; only the editor in front of it and the backend behind it are played.
Read `simulate` first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from monkeycode_lsp import config
from monkeycode_lsp.bench.replay import product
from monkeycode_lsp.bench.replay.author import follow
from monkeycode_lsp.bench.replay.gap import GapText
from monkeycode_lsp.bench.replay.naive import Naive
from monkeycode_lsp.bench.replay.observed import Observed, Replied, Typed
from monkeycode_lsp.bench.replay.oracle import Oracle, OracleEngine
from monkeycode_lsp.bench.replay.trace import Patch, Trace
from monkeycode_lsp.bench.replay.virtual import VirtualLoop
from monkeycode_lsp.errors import SupersededError
from monkeycode_lsp.text import Change

PRODUCT, AT_ONCE, FIXED = "monkeycode", "naive (asks at every key)", "fixed (waits 200 ms)"
SYSTEMS = (PRODUCT, AT_ONCE, FIXED)
_FIXED_S = 0.2
_AFTERWARDS_S = 5.0
"""After the last key: every answer has come by then."""

Progress = Callable[[int, int], None]
"""Told the keys that were typed and the keys there are."""


class Server(Protocol):
    """One system, as an editor sees it."""

    @property
    def n_failed(self) -> int:
        """Asks that failed; with this backend none should."""
        ...

    def edit(self, index: int, changes: list[Change], position: tuple[int, int]) -> None:
        """The author typed the key; the cursor stands there now."""
        ...

    async def ask(self) -> tuple[str, str]:
        """Text to show at the cursor and its origin.  Raises `SupersededError`."""
        ...

    async def aclose(self) -> None:
        """Stop everything."""
        ...


def simulate(
    trace: Trace,
    system: str,
    *,
    latency_s: float,
    q: float,
    seed: int = 0,
    editor_s: float = 0.0,
    streamed: bool = False,
    background: bool = False,
    settings: config.Config | None = None,
    progress: Progress | None = None,
) -> Observed:
    """What one system of `SYSTEMS` does while the trace is typed.

    `editor_s`: the editor asks so long after the last key.  `streamed`: the answer comes in pieces.
    `background`: the backend takes work that nobody waits for yet, so that the product may look ahead.
    """
    typed = follow(trace)
    oracle = Oracle(typed, q=q, seed=seed)

    async def run() -> Observed:
        engine = OracleEngine(oracle, latency_s=latency_s, streamed=streamed, background=background)
        if system == PRODUCT:
            server: Server = await product.start(trace, engine, settings or config.Config())
        else:
            server = Naive(typed, engine, debounce_s=_FIXED_S if system == FIXED else 0.0)
        editor = _Editor(trace, typed, server, oracle, editor_s=editor_s)
        start = await editor.replay(progress or (lambda _done, _all: None))
        await server.aclose()
        for sent in engine.sent:
            sent.at -= start
            sent.ended = None if sent.ended is None else sent.ended - start
        return Observed(system=system, typed=typed, replied=editor.replied, sent=engine.sent, n_failed=server.n_failed)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(run())


class _Editor:
    """Types the trace.  Asks after each key, and cancels the ask before."""

    # The mutable state is the text, the ask that is not answered yet, the timer of the next one and
    # what was replied; it changes in `_type` and `_ask` only.

    def __init__(self, trace: Trace, typed: Sequence[Typed], server: Server, oracle: Oracle, *, editor_s: float) -> None:
        self.replied = [Replied(at=None)] * len(typed)
        self._trace = trace
        self._server = server
        self._oracle = oracle
        self._editor_s = editor_s
        self._text = GapText(trace.start)
        self._asking: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._start = 0.0

    async def replay(self, progress: Progress) -> float:
        """From the first key to the last answer.  Gives the loop's time of the first key."""
        loop = asyncio.get_running_loop()
        self._start = loop.time() - self._trace.keys[0].at_s
        n_keys = len(self._trace.keys)
        async with asyncio.TaskGroup() as asks:
            for index, key in enumerate(self._trace.keys):
                await asyncio.sleep(max(0.0, self._start + key.at_s - loop.time()))
                self._type(index, key.patches, asks)
                if index % 100 == 0:
                    progress(index, n_keys)
            await asyncio.sleep(_AFTERWARDS_S)
        progress(n_keys, n_keys)
        return self._start

    def _type(self, index: int, patches: tuple[Patch, ...], asks: asyncio.TaskGroup) -> None:
        self._oracle.typed(index)
        self._server.edit(index, [_change(self._text, patch) for patch in patches], self._text.position)
        if self._asking is not None:
            self._asking.cancel()
        if self._timer is not None:
            self._timer.cancel()

        def ask() -> None:
            self._asking = asks.create_task(self._ask(index))

        if self._editor_s:
            self._timer = asyncio.get_running_loop().call_later(self._editor_s, ask)
        else:
            ask()

    async def _ask(self, index: int) -> None:
        loop = asyncio.get_running_loop()
        try:
            text, origin = await self._server.ask()
        except (SupersededError, asyncio.CancelledError) as exc:
            self.replied[index] = Replied(at=loop.time() - self._start, superseded=True)
            if isinstance(exc, asyncio.CancelledError):
                raise
        else:
            self.replied[index] = Replied(at=loop.time() - self._start, text=text, origin=origin)


def _change(text: GapText, patch: Patch) -> Change:
    """The patch as an editor sends it; `text` follows."""
    text.go(patch.position + patch.deleted)
    end = text.position
    text.go(patch.position)
    start = text.position
    text.apply(patch)
    return Change(patch.inserted, start, end)
