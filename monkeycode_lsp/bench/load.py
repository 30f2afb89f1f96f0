"""The way to an endpoint under load: what our servers add, whether they keep up, and what cancels and deaths cost.

The parts run one after the other with the same servers; inside a part the two ways take turns.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager

import msgspec

from monkeycode_lsp import config
from monkeycode_lsp.bench import backend_process, overhead
from monkeycode_lsp.bench.backend_process import BackendProcess
from monkeycode_lsp.bench.load_arrivals import arrivals
from monkeycode_lsp.bench.load_cancels import cancels
from monkeycode_lsp.bench.load_endurance import endurance
from monkeycode_lsp.bench.load_failover import failover
from monkeycode_lsp.bench.load_report import STRAIGHT, THROUGH, Part, Report
from monkeycode_lsp.bench.load_saturation import saturation
from monkeycode_lsp.bench.load_stage import STEADY, Plan, Stage, numbers
from monkeycode_lsp.bench.load_ways import Editors, Straight
from monkeycode_lsp.engines.local.hardware import busy_cores

PARTS: dict[str, Callable[[Stage], Awaitable[Part]]] = {
    "arrivals": arrivals,
    "saturation": saturation,
    "cancels": cancels,
    "failover": failover,
    "endurance": endurance,
}
OWN = "our own, which answers after 250 ms"
_LOOK_S = 1.0


async def run(
    endpoint: config.Endpoint,
    plan: Plan,
    *,
    only: Sequence[str] = (),
    say: Callable[[str], None] = lambda _: None,
) -> Report:
    """The parts in `only`, or all.  An endpoint without `url`: one of our own.  Raises an `EngineError`."""
    busy = busy_cores(_LOOK_S)
    parts = []
    async with _endpoint(endpoint) as (backend, settings), aclosing(Straight(settings, os.environ)) as straight:
        api = await straight.greet()
        say("starting servers")
        async with Editors.running(plan.servers, [settings]) as editors:
            stage = Stage(plan, settings, backend, editors, {THROUGH: editors, STRAIGHT: straight}, numbers(), say)
            await asyncio.gather(*(editor.warm_up(stage.numbers) for editor in editors.all))
            for name, measure in PARTS.items():
                if name in only or not only:
                    say(name)
                    parts.append(await measure(stage))
    return Report(
        endpoint=OWN if backend is not None else f"{straight.base} ({api})",
        busy_cores=busy,
        cores=os.cpu_count() or 1,
        servers=plan.servers,
        rate=plan.rate,
        seconds=plan.seconds,
        parts=tuple(parts),
    )


@asynccontextmanager
async def _endpoint(endpoint: config.Endpoint) -> AsyncIterator[tuple[BackendProcess | None, config.Endpoint]]:
    if endpoint.url:
        yield None, endpoint
        return
    async with backend_process.running(overhead.ANSWER, STEADY) as backend:
        yield backend, msgspec.structs.replace(endpoint, url=backend.url, api="openai", model="qwen2.5-coder")
