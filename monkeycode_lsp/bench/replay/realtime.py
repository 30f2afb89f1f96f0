"""Replays a part of a trace in real time: real servers over stdio, in front of them an editor, behind them an endpoint.

Each system has a process of its own.  The systems take turns, a slice of keys each, so that a machine that is busy for a
while spoils all of them alike.  Times are those of the trace, whoever's turn it is.  What is asked ahead of the user, or with a
draft, cannot be told from other requests at the endpoint: it counts as they do.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import tempfile
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Protocol

import msgspec

from monkeycode_lsp import config
from monkeycode_lsp.bench.replay import endpoint
from monkeycode_lsp.bench.replay.author import follow
from monkeycode_lsp.bench.replay.gap import GapText
from monkeycode_lsp.bench.replay.observed import Observed, Replied, Sent, Typed
from monkeycode_lsp.bench.replay.oracle import Oracle
from monkeycode_lsp.bench.replay.simulate import AT_ONCE, FIXED, PRODUCT, Progress
from monkeycode_lsp.bench.replay.trace import Patch, Trace
from monkeycode_lsp.client import Client, ClientError, start
from monkeycode_lsp.engines.base import Engine
from monkeycode_lsp.errors import EngineError

SLICE_KEYS = 100
_URI = "file:///replay/"
_MOST_TAIL_S = 3.0
"""So long after a slice's last key an answer is waited for, unless the next key comes before."""
_START_S = 300.0
_FIXED_MS = 200
_CAPABILITIES: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-32"]},
    "textDocument": {"inlineCompletion": {"dynamicRegistration": False}},
}


class Backend(Engine, Protocol):
    """An engine that keeps what it was asked."""

    sent: list[Sent]


MakeBackend = Callable[[Oracle, Sequence[Typed]], Backend]


class _Running(msgspec.Struct):
    """One system: its server, and who types into it."""

    editor: _Editor
    backend: Backend


async def replay(
    trace: Trace,
    systems: Sequence[str],
    make_backend: MakeBackend,
    *,
    q: float,
    seed: int = 0,
    editor_s: float = 0.0,
    settings: Mapping[str, Any],
    slice_keys: int = SLICE_KEYS,
    progress: Progress,
) -> list[Observed]:
    """What each of the systems does while the trace is typed.  Takes as long as that, for each system.

    `settings`: of ours, beside its defaults.
    """
    typed, n_keys = follow(trace), len(trace.keys)
    running: list[_Running] = []
    async with AsyncExitStack() as stack:
        for system in systems:
            oracle = Oracle(typed, q=q, seed=seed)
            backend = make_backend(oracle, typed)
            url = await stack.enter_async_context(endpoint.serve(backend))
            client = await stack.enter_async_context(_server(system, url, settings))
            running.append(_Running(_Editor(trace, typed, client, oracle, editor_s=editor_s), backend))
        for one in running:
            await one.editor.begin()
            one.backend.sent.clear()
        n_typed = itertools.count(1)
        progress(0, n_keys * len(systems))
        for first in range(0, n_keys, slice_keys):
            for one in running:
                last = min(first + slice_keys, n_keys)
                await one.editor.type(first, last, lambda: progress(next(n_typed), n_keys * len(systems)))
    return [
        Observed(system, one.editor.typed, one.editor.replied, _in_trace_time(one), n_failed=one.editor.n_failed)
        for system, one in zip(systems, running, strict=True)
    ]


def _in_trace_time(one: _Running) -> list[Sent]:
    for sent in one.backend.sent:
        sent.at, sent.ended = one.editor.trace_time(sent.at), None if sent.ended is None else one.editor.trace_time(sent.ended)
    return one.backend.sent


@asynccontextmanager
async def _server(system: str, url: str, settings: Mapping[str, Any]) -> AsyncIterator[Client]:
    """A running one; whatever it remembers goes with it."""
    python = sys.executable
    commands = {
        PRODUCT: [python, "-c", "from monkeycode_lsp.__main__ import serve; import sys; sys.argv[1:] = []; serve()"],
        AT_ONCE: [python, "-m", "monkeycode_lsp.bench.floor", url],
        FIXED: [python, "-m", "monkeycode_lsp.bench.floor", url, "--debounce-ms", str(_FIXED_MS)],
    }
    ours = {"engine": "remote", "remote": {"endpoints": [{"url": url, "model": endpoint.MODEL, "api": "openai"}]}, "logLevel": "error"}
    with tempfile.TemporaryDirectory(prefix="monkeycode-replay-") as home:
        env = {name: value for name, value in os.environ.items() if not name.startswith("MONKEYCODE_")} | {"MONKEYCODE_HOME": home}
        async with start(commands[system], env=env, stderr=asyncio.subprocess.DEVNULL) as client:
            await client.initialize(config.merge(settings, ours), root_uri="file:///replay", capabilities=_CAPABILITIES)
            yield client


class _Asked(msgspec.Struct):
    """An ask, and where it was asked."""

    key: int
    number: int
    future: asyncio.Future[Any]
    place: str


class _Editor:
    """Types into one server.  After each key it cancels the ask before and asks again.

    The mutable state is the text, the newest ask and its timer, what was typed and replied when, and when each slice began; it
    changes in `type` and what that calls.
    """

    def __init__(self, trace: Trace, typed: Sequence[Typed], client: Client, oracle: Oracle, *, editor_s: float) -> None:
        self.replied = [Replied(at=None)] * len(trace.keys)
        self.typed = list(typed)
        """With the times at which the keys were really typed."""
        self.n_failed = 0
        self._trace = trace
        self._client = client
        self._oracle = oracle
        self._editor_s = editor_s
        self._uri = _URI + trace.name
        self._text = GapText(trace.start)
        self._asks: list[_Asked] = []
        self._timer: asyncio.TimerHandle | None = None
        self._began: list[float] = []
        self._origins: list[float] = []

    def trace_time(self, loop_time: float) -> float:
        """The trace's time then: since the beginning of the slice that was being typed."""
        return loop_time - self._origins[max(0, bisect_right(self._began, loop_time) - 1)]

    async def begin(self) -> None:
        """Open the document, and wait until the server and the engine behind it answer at all."""
        loop = asyncio.get_running_loop()
        uri, until = f"{_URI}ready.py", loop.time() + _START_S
        self._client.open(uri, "python", "def add(first, second):\n    return ")
        while True:
            reply = await self._client.ask(uri, 1, len("    return "), invoked=True)[1]
            if reply and reply["items"]:
                break
            if loop.time() > until:
                raise EngineError(f"The engine gave no answer within {_START_S:.0f} seconds.", remedy="See `monkeycode doctor`.")
            await asyncio.sleep(0.2)
        self._client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        self._client.open(self._uri, self._trace.language, self._trace.start)

    async def type(self, first: int, last: int, typed: Callable[[], None]) -> None:
        """One slice; `typed` hears of each key.  What is not answered when the next key would come is cancelled."""
        loop = asyncio.get_running_loop()
        keys = self._trace.keys
        origin = loop.time() - keys[first].at_s
        self._began.append(loop.time())
        self._origins.append(origin)
        self._asks.clear()
        for index in range(first, last):
            await asyncio.sleep(origin + keys[index].at_s - loop.time())
            self._type(index, keys[index].patches, origin)
            typed()
        tail_s = keys[last].at_s - keys[last - 1].at_s if last < len(keys) else _MOST_TAIL_S
        await self._settle(loop.time() + min(tail_s, _MOST_TAIL_S))
        await self._learn_origins()

    async def _settle(self, until: float) -> None:
        """Wait for the last answer, and for the word that the others will not come."""
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            await asyncio.sleep(min(self._editor_s, until - loop.time()))
        if self._asks:
            await asyncio.wait({self._asks[-1].future}, timeout=max(0.0, until - loop.time()))
        self._stop_asking()
        if self._asks:
            await asyncio.wait({asked.future for asked in self._asks}, timeout=_MOST_TAIL_S)

    def _type(self, index: int, patches: tuple[Patch, ...], origin: float) -> None:
        self._oracle.typed(index)
        self.typed[index] = msgspec.structs.replace(self.typed[index], at=asyncio.get_running_loop().time() - origin)
        changes = [self._change(patch) for patch in patches]
        document = {"uri": self._uri, "version": index + 1}
        self._client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": changes})
        self._stop_asking()
        if self._editor_s:
            self._timer = asyncio.get_running_loop().call_later(self._editor_s, self._ask, index, origin)
        else:
            self._ask(index, origin)

    def _change(self, patch: Patch) -> dict[str, Any]:
        """The patch as an editor sends it; the text follows."""
        self._text.go(patch.position + patch.deleted)
        end = self._text.position
        self._text.go(patch.position)
        start = self._text.position
        self._text.apply(patch)
        places = {name: {"line": line, "character": column} for name, (line, column) in (("start", start), ("end", end))}
        return {"range": places, "text": patch.inserted}

    def _stop_asking(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._asks and not self._asks[-1].future.done():
            self._client.notify("$/cancelRequest", {"id": self._asks[-1].number})

    def _ask(self, index: int, origin: float) -> None:
        line, column = self._text.position
        number, future = self._client.ask(self._uri, line, column)
        self._asks.append(_Asked(index, number, future, f":{line + 1}:{column + 1}"))
        loop = asyncio.get_running_loop()

        def answered(future: asyncio.Future[Any]) -> None:
            self.replied[index] = _replied(future, loop.time() - origin)

        future.add_done_callback(answered)

    async def _learn_origins(self) -> None:
        """Ask the server where its suggestions came from; those we compare with do not know the question."""
        question = {"command": "monkeycode.why", "arguments": [len(self._asks)]}
        try:
            outcomes = await self._client.call("workspace/executeCommand", question)
        except ClientError:
            return
        self.n_failed += sum(outcome["outcome"] == "failed" for outcome in outcomes)
        left = sorted(outcomes, key=lambda outcome: outcome["at"])  # as they were asked
        for asked in self._asks:
            at = next((at for at, outcome in enumerate(left) if outcome["place"].endswith(asked.place)), None)
            if at is not None:  # an ask that is cancelled before it is looked at leaves none
                self.replied[asked.key] = msgspec.structs.replace(self.replied[asked.key], origin=left[at]["origin"])
                del left[: at + 1]


def _replied(future: asyncio.Future[Any], at: float) -> Replied:
    if future.cancelled() or future.exception() is not None:
        return Replied(at=at, superseded=True)
    result = future.result()
    if result is None:
        return Replied(at=at, superseded=True)
    return Replied(at=at, text=result["items"][0]["insertText"] if result["items"] else "")
