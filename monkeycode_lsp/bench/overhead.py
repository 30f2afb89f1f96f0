"""What the server itself costs: start, memory, an ask with an instant endpoint, a recalled ask, an edit, a cancel.

Systems take turns in the same run; the first asks of each round are dropped.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from monkeycode_lsp import app
from monkeycode_lsp.bench import backend
from monkeycode_lsp.bench.figures import Spread
from monkeycode_lsp.bench.processes import resident_mb
from monkeycode_lsp.client import Client, start

ANSWER = "alpha, beta=gamma)"
URI = "file:///w/bench.py"
_LINES = "def value_{n}(first, second):\n    return first * {n} + second\n\n\n"
_DROPPED = 20


class Report(msgspec.Struct, frozen=True):
    """All in milliseconds unless a name says otherwise."""

    start_ms: dict[str, Spread]
    memory_mb: dict[str, float]
    ask_ms: dict[str, Spread]
    ask_ratio_p50: float
    repeated_ms: Spread
    typed_through_ms: Spread
    edit_10k_lines_ms: Spread
    cancel_to_reply_ms: Spread
    cancel_to_closed_ms: Spread


def document(n_bytes: int) -> str:
    """Python text of about that size."""
    text = "".join(_LINES.format(n=n) for n in range(n_bytes // 60 + 1))
    return text[: text.rindex("\n", 0, n_bytes) + 1]


def commands(url: str) -> dict[str, list[str]]:
    """How each system is started."""
    return {
        "floor": [sys.executable, "-m", "monkeycode_lsp.bench.floor", url],
        "monkeycode": [sys.executable, "-c", "from monkeycode_lsp.__main__ import serve; import sys; sys.argv[1:] = []; serve()"],
    }


def options(url: str) -> dict[str, Any]:
    """Ours, set to ask that endpoint without waiting."""
    return {
        "engine": "remote",
        "remote": {"endpoints": [{"url": url, "model": "qwen2.5-coder", "api": "openai"}]},
        "debounce": {"mode": "off"},
        "logLevel": "error",
    }


@asynccontextmanager
async def running(command: Sequence[str], url: str) -> AsyncIterator[tuple[Client, float]]:
    """A started server and the milliseconds until it answered `initialize`."""
    with tempfile.TemporaryDirectory(prefix="monkeycode-bench-") as home:
        began = time.perf_counter()
        env = os.environ | {"MONKEYCODE_HOME": home}
        async with start(command, env=env, stderr=asyncio.subprocess.DEVNULL) as client:
            await client.initialize(options(url), root_uri="file:///w")
            yield client, (time.perf_counter() - began) * 1e3


async def run(*, rounds: int = 3, n_asks: int = 200) -> Report:
    """The whole scenario; about a minute."""
    starts: dict[str, list[float]] = {}
    memory: dict[str, float] = {}
    asks: dict[str, list[float]] = {}
    async with backend.serve(ANSWER) as endpoint:
        for _ in range(rounds):
            for name, command in commands(endpoint.url).items():
                async with running(command, endpoint.url) as (client, start_ms):
                    starts.setdefault(name, []).append(start_ms)
                    memory.setdefault(name, resident_mb(client.process.pid))
                    asks.setdefault(name, []).extend(await _fresh_asks(client, n_asks))
        async with running(commands(endpoint.url)["monkeycode"], endpoint.url) as (client, _):
            repeated, typed = await _recalled(client, n_asks)
    async with (
        backend.serve(ANSWER, delay_s=0.5) as slow,
        running(commands(slow.url)["monkeycode"], slow.url) as (client, _),
    ):
        replies, closed = await _cancels(client, slow, 20)
    spreads = {name: Spread.of(values) for name, values in asks.items()}
    return Report(
        start_ms={name: Spread.of(values) for name, values in starts.items()},
        memory_mb=memory,
        ask_ms=spreads,
        ask_ratio_p50=spreads["monkeycode"].p50 / spreads["floor"].p50,
        repeated_ms=Spread.of(repeated),
        typed_through_ms=Spread.of(typed),
        edit_10k_lines_ms=Spread.of(await _edits(10_000, 2_000)),
        cancel_to_reply_ms=Spread.of(replies),
        cancel_to_closed_ms=Spread.of(closed),
    )


async def _fresh_asks(client: Client, n_asks: int) -> list[float]:
    """Each ask has a place of its own: a line with an open call is inserted, and asked for at its end."""
    client.open(URI, "python", document(14_000))
    times = []
    for n in range(n_asks + _DROPPED):
        line = f"result_{n} = value_{n}("
        client.insert(URI, n + 1, 0, 0, line + "\n")
        began = time.perf_counter()
        result = await client.ask(URI, 0, len(line))[1]
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
