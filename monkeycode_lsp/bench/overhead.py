"""What the server itself costs: start, memory, an ask with an instant endpoint, a recalled ask, an edit, a cancel.

Systems take turns in the same run; the first asks of each round are dropped.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from monkeycode_lsp import app
from monkeycode_lsp.bench import backend, tabby
from monkeycode_lsp.bench.engine_report import Figure, at_most
from monkeycode_lsp.bench.figures import Spread
from monkeycode_lsp.bench.processes import resident_mb
from monkeycode_lsp.client import Client, ClientError, start
from monkeycode_lsp.errors import MonkeyCodeError

ANSWER = "alpha, beta=gamma)"
URI = "file:///w/bench.py"
_LINES = "def value_{n}(first, second):\n    return first * {n} + second\n\n\n"
OURS, FLOOR = "monkeycode", "floor"
P50_RATIO, P99_RATIO = 1.5, 2.0
PEER_RATIO = 0.35
_DROPPED = 20
_PEER_S = 30.0


class Report(msgspec.Struct, frozen=True):
    """All in milliseconds unless a name says otherwise."""

    start_ms: dict[str, Spread]
    memory_mb: dict[str, float]
    ask_ms: dict[str, Spread]
    ratios: tuple[Figure, ...]
    """Of our asks to those of the others."""
    repeated_ms: Spread
    typed_through_ms: Spread
    edit_10k_lines_ms: Spread
    cancel_to_reply_ms: Spread
    cancel_to_closed_ms: Spread


def document(n_bytes: int) -> str:
    """Python text of about that size."""
    text = "".join(_LINES.format(n=n) for n in range(n_bytes // 60 + 1))
    return text[: text.rindex("\n", 0, n_bytes) + 1]


class System(NamedTuple):
    """How a server is started and asked."""

    command: Sequence[str]
    options: Mapping[str, Any]
    prepare: Callable[[Path], Mapping[str, str]]
    """What it needs in a home of its own; the environment in which it is started."""
    ask: Callable[[Client, int, int], asyncio.Future[Any]]


def systems(url: str, peer: str = "") -> dict[str, System]:
    """Ours, the floor, and the program `peer` if there is one."""
    floor = [sys.executable, "-m", "monkeycode_lsp.bench.floor", url]
    found = {
        FLOOR: System(floor, options(url), _home, _ask_inline),
        OURS: System(COMMAND, options(url), _home, _ask_inline),
    }
    return found | {tabby.NAME: System(tabby.command(peer), {}, lambda home: tabby.prepare(home, url), _ask_popup)} if peer else found


COMMAND = (sys.executable, "-c", "from monkeycode_lsp.__main__ import serve; import sys; sys.argv[1:] = []; serve()")
"""As `monkeycode-lsp` starts."""


def _home(home: Path) -> Mapping[str, str]:
    return os.environ | {"MONKEYCODE_HOME": str(home)}


def _ask_inline(client: Client, line: int, character: int) -> asyncio.Future[Any]:
    return client.ask(URI, line, character)[1]


def _ask_popup(client: Client, line: int, character: int) -> asyncio.Future[Any]:
    return client.request("textDocument/completion", tabby.params(URI, line, character))[1]


def options(url: str) -> dict[str, Any]:
    """Ours, set to ask that endpoint without waiting."""
    return {
        "engine": "remote",
        "remote": {"endpoints": [{"url": url, "model": "qwen2.5-coder", "api": "openai"}]},
        "debounce": {"mode": "off"},
        "logLevel": "error",
    }


@asynccontextmanager
async def running(system: System) -> AsyncIterator[tuple[Client, float]]:
    """A started server and the milliseconds until it answered `initialize`."""
    with tempfile.TemporaryDirectory(prefix="monkeycode-bench-", ignore_cleanup_errors=True) as home:
        env = system.prepare(Path(home))
        began = time.perf_counter()
        async with start(system.command, env=env, stderr=asyncio.subprocess.DEVNULL) as client:
            await client.initialize(system.options, root_uri="file:///w")
            yield client, (time.perf_counter() - began) * 1e3


async def run(*, rounds: int = 3, n_asks: int = 200, peer: str = "") -> Report:
    """The whole scenario; about a minute.  `peer`: the path of tabby-agent.  Raises `MonkeyCodeError` if that is something else."""
    starts: dict[str, list[float]] = {}
    memory: dict[str, float] = {}
    asks: dict[str, list[float]] = {}
    async with backend.serve(ANSWER) as endpoint:
        if peer:
            await _try_peer(systems(endpoint.url, peer)[tabby.NAME])
        for _ in range(rounds):
            for name, system in systems(endpoint.url, peer).items():
                async with running(system) as (client, start_ms):
                    starts.setdefault(name, []).append(start_ms)
                    memory.setdefault(name, resident_mb(client.process.pid))
                    asks.setdefault(name, []).extend(await _fresh_asks(client, system, n_asks))
        async with running(systems(endpoint.url)[OURS]) as (client, _):
            repeated, typed = await _recalled(client, n_asks)
    async with (
        backend.serve(ANSWER, delay_s=0.5) as slow,
        running(systems(slow.url)[OURS]) as (client, _),
    ):
        replies, closed = await _cancels(client, slow, 20)
    spreads = {name: Spread.of(values) for name, values in asks.items()}
    return Report(
        start_ms={name: Spread.of(values) for name, values in starts.items()},
        memory_mb=memory,
        ask_ms=spreads,
        ratios=ratios(spreads),
        repeated_ms=Spread.of(repeated),
        typed_through_ms=Spread.of(typed),
        edit_10k_lines_ms=Spread.of(await _edits(10_000, 2_000)),
        cancel_to_reply_ms=Spread.of(replies),
        cancel_to_closed_ms=Spread.of(closed),
    )


def ratios(asks: Mapping[str, Spread]) -> tuple[Figure, ...]:
    """Ours to the floor's, and to the peer's if there is one."""
    ours, floor = asks[OURS], asks[FLOOR]
    to_floor = (
        at_most(f"ask / {FLOOR}, p50", ours.p50 / floor.p50, P50_RATIO, "x"),
        at_most(f"ask / {FLOOR}, p99", ours.p99 / floor.p99, P99_RATIO, "x"),
    )
    peer = asks.get(tabby.NAME)
    if peer is None:
        return to_floor
    return (
        *to_floor,
        at_most(f"ask / {tabby.NAME}, p50", ours.p50 / peer.p50, PEER_RATIO, "x"),
        Figure(f"ask / {tabby.NAME}, p99", ours.p99 / peer.p99, "x"),
    )


async def _try_peer(system: System) -> None:
    """Whether it is what it should be."""
    try:
        async with asyncio.timeout(_PEER_S), running(system) as (client, _):
            await _fresh_asks(client, system, 1)
    except (OSError, TimeoutError, ClientError, RuntimeError) as exc:
        raise MonkeyCodeError(f"{system.command[0]} does not complete code as {tabby.NAME} does.", remedy=tabby.REMEDY) from exc


async def _fresh_asks(client: Client, system: System, n_asks: int) -> list[float]:
    """Each ask has a place of its own: a line with an open call is inserted, and asked for at its end."""
    client.open(URI, "python", document(14_000))
    times = []
    for n in range(n_asks + _DROPPED):
        line = f"result_{n} = value_{n}("
        client.insert(URI, n + 1, 0, 0, line + "\n")
        began = time.perf_counter()
        result = await system.ask(client, 0, len(line))
        times.append((time.perf_counter() - began) * 1e3)
        if not result or not result["items"]:
            raise RuntimeError("a fresh ask was answered empty")
    return times[_DROPPED:]


async def _recalled(client: Client, n_asks: int) -> tuple[list[float], list[float]]:
    client.open(URI, "python", document(14_000))
    line, version = "result = value(", 1
    client.insert(URI, version, 0, 0, line + "\n")
    await client.ask(URI, 0, len(line))[1]
    repeated: list[float] = []
    typed: list[float] = []
    for _ in range(n_asks):
        began = time.perf_counter()
        await client.ask(URI, 0, len(line))[1]
        repeated.append((time.perf_counter() - began) * 1e3)
    while len(typed) < n_asks:
        line, version = f"again_{version} = value(", version + 1
        client.insert(URI, version, 0, 0, line + "\n")
        await client.ask(URI, 0, len(line))[1]
        for at in range(len(ANSWER) - 1):
            version += 1
            client.insert(URI, version, 0, len(line) + at, ANSWER[at])
            began = time.perf_counter()
            await client.ask(URI, 0, len(line) + at + 1)[1]
            typed.append((time.perf_counter() - began) * 1e3)
    return repeated, typed


async def _cancels(client: Client, slow: backend.Backend, n: int) -> tuple[list[float], list[float]]:
    """An ask that is superseded by the next in the middle of its answer: time to its null, and to the endpoint seeing the end."""
    client.open(URI, "python", document(14_000))
    loop = asyncio.get_running_loop()
    await client.ask(URI, 0, 0)[1]  # imports and connects
    replies, closed = [], []
    for number in range(n):
        line = f"slow_{number} = value("
        client.insert(URI, number + 1, 0, 0, line + "\n")
        _, old = client.ask(URI, 0, len(line))
        await asyncio.sleep(0.1)
        began = loop.time()
        client.ask(URI, 0, 2)  # inside a word: quiet itself, it only takes over
        await old
        replies.append((loop.time() - began) * 1e3)
        async with asyncio.timeout(5):
            closed.append((await slow.closed.get() - began) * 1e3)
    return replies, closed


async def _edits(n_lines: int, n: int) -> list[float]:
    """One letter typed in the middle: the whole handling of its notification, after an ask, whose snapshot makes the edit copy."""
    with tempfile.TemporaryDirectory(prefix="monkeycode-bench-") as home:
        server = app.make_server({"engine": "off"}, state=Path(home))
        text = "".join(f"variable_{number} = {number}\n" for number in range(n_lines))
        capabilities: dict[str, Any] = {}
        opened = {"uri": URI, "languageId": "python", "version": 0, "text": text}
        server.receive(_message("initialize", {"processId": None, "rootUri": None, "capabilities": capabilities}, number=1))
        server.receive(_message("initialized", {}))
        server.receive(_message("textDocument/didOpen", {"textDocument": opened}))
        ask = {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 0}, "context": {"triggerKind": 2}}
        times = []
        for number in range(n):
            at = {"line": n_lines // 2, "character": number}
            params = {
                "textDocument": {"uri": URI, "version": number + 1},
                "contentChanges": [{"range": {"start": at, "end": at}, "text": "x"}],
            }
            body = _message("textDocument/didChange", params)
            server.receive(_message("textDocument/inlineCompletion", ask, number=number + 2))
            began = time.perf_counter()
            server.receive(body)
            times.append((time.perf_counter() - began) * 1e3)
        await server.aclose()
    return times


def _message(method: str, params: Any, *, number: int | None = None) -> bytes:
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    return msgspec.json.encode(message if number is None else message | {"id": number})
