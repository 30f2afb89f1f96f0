"""The local engine beside llama-cpp-python called directly: warm, one letter more.  Both take turns on the same model."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from contextlib import aclosing
from pathlib import Path

import msgspec

from monkeycode_lsp import config, prompt
from monkeycode_lsp.bench.figures import Spread
from monkeycode_lsp.bench.overhead import document
from monkeycode_lsp.domain import Prompt, Usage, Window
from monkeycode_lsp.engines.base import Engine, Model
from monkeycode_lsp.engines.local.native import NativeEngine

_N_TOKENS = 8
_TYPED = "rest_of_the_line"
_REST_S = 0.1
"""Threads of the one spin on after its turn; the other's turn begins when they sleep."""


class Report(msgspec.Struct, frozen=True):
    """Milliseconds; `reused` and `read` are prompt tokens of the last warm ask."""

    model: str
    cold_first_ms: dict[str, float]
    first_ms: dict[str, Spread]
    first_ratio_p50: float
    tokens_per_second: dict[str, float]
    reused: int
    read: int


def _window(typed: str, n_bytes: int) -> Window:
    text = document(n_bytes)
    return Window(prefix=f"{text}def next_value(first, second):\n    {typed}", suffix="\n", language="python", path="bench.py")


async def run(model: Path, *, threads: int = 2, n_bytes: int = 1_500, rounds: int = 3) -> Report:
    """About a minute with the default model; needs llama-cpp-python."""
    settings = config.Local(threads=threads)
    direct = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "monkeycode_lsp.bench.direct", str(model), str(threads),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    engine = NativeEngine(settings=settings, model=model, notify=lambda _message: None)
    try:
        info = await engine.ready()
        return await _take_turns(engine, info, direct, n_bytes, rounds)
    finally:
        await engine.aclose()
        if direct.stdin is not None:
            direct.stdin.close()
        await direct.wait()


async def _take_turns(engine: Engine, info: Model, direct: asyncio.subprocess.Process, n_bytes: int, rounds: int) -> Report:
    first: dict[str, list[float]] = {"monkeycode": [], "direct": []}
    speed: dict[str, list[float]] = {"monkeycode": [], "direct": []}
    cold: dict[str, float] = {}
    usage = Usage()
    for number in range(rounds):
        for at in range(len(_TYPED)):
            window = msgspec.structs.replace(
                _window(_TYPED[:at], n_bytes), prefix=f"# round {number}\n" + _window(_TYPED[:at], n_bytes).prefix
            )
            rendered = prompt.render(window, (), info.family, max_tokens=_N_TOKENS)
            await asyncio.sleep(_REST_S)
            ours, whole, n, usage = await _ask(engine, rendered)
            await asyncio.sleep(_REST_S)
            theirs = await _ask_direct(direct, "".join(segment.text for segment in rendered.segments))
            if at == 0:
                cold.setdefault("monkeycode", ours)
                cold.setdefault("direct", theirs[0])
                continue
            first["monkeycode"].append(ours)
            first["direct"].append(theirs[0])
            if n > 1 and theirs[2] > 1:
                speed["monkeycode"].append((n - 1) / (whole - ours) * 1e3)
                speed["direct"].append((theirs[2] - 1) / (theirs[1] - theirs[0]) * 1e3)
    spreads = {name: Spread.of(values) for name, values in first.items()}
    return Report(
        model=info.name,
        cold_first_ms=cold,
        first_ms=spreads,
        first_ratio_p50=spreads["monkeycode"].p50 / spreads["direct"].p50,
        tokens_per_second={name: sum(values) / len(values) for name, values in speed.items() if values},
        reused=usage.reused or 0,
        read=usage.read or 0,
    )


async def _ask(engine: Engine, rendered: Prompt) -> tuple[float, float, int, Usage]:
    began = time.perf_counter()
    first = 0.0
    usage = Usage()
    async with aclosing(engine.stream(rendered)) as stream:
        async for chunk in stream:
            first = first or (time.perf_counter() - began) * 1e3
            usage = chunk.usage or usage
    return first, (time.perf_counter() - began) * 1e3, usage.generated or 0, usage


async def _ask_direct(direct: asyncio.subprocess.Process, text: str) -> list[float]:
    if direct.stdin is None or direct.stdout is None:
        raise RuntimeError("the direct process has no pipes")
    direct.stdin.write(json.dumps([text, _N_TOKENS]).encode() + b"\n")
    answer: list[float] = json.loads(await direct.stdout.readline())
    return answer
