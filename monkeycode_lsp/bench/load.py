"""The way to an endpoint under load: what our servers add, whether they keep up, and what cancels and deaths cost.

The parts run one after the other with the same servers; inside a part the two ways take turns.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager

import msgspec

from monkeycode_lsp import config
from monkeycode_lsp.bench import backend_process, overhead
from monkeycode_lsp.bench.backend_process import BackendProcess
from monkeycode_lsp.bench.load_arrivals import arrivals, slice_s, turns
from monkeycode_lsp.bench.load_cancels import cancels
from monkeycode_lsp.bench.load_endurance import endurance
from monkeycode_lsp.bench.load_failover import SECONDS_A_SECOND, failover
from monkeycode_lsp.bench.load_report import STRAIGHT, THROUGH, Part, Report
from monkeycode_lsp.bench.load_saturation import SETTLE_S, TURNS, levels, saturation
from monkeycode_lsp.bench.load_stage import DELAY_S, STEADY, Plan, Stage, numbers
from monkeycode_lsp.bench.load_ways import ANSWER_S, DEADLINE_S, Editors, Straight
from monkeycode_lsp.engines.local.hardware import busy_cores

PARTS: dict[str, Callable[[Stage], Awaitable[Part]]] = {
    "arrivals": arrivals,
    "saturation": saturation,
    "cancels": cancels,
    "failover": failover,
    "endurance": endurance,
}
OWN = "our own, which answers after 250 ms"
OF_YOURS = ("arrivals", "saturation")
"""The parts that are measured at an endpoint of the user's."""
_LOOK_S = 1.0
# Roughly, on two cores.
_START_S = 5.0
_SERVER_S = 0.6
_OTHERS_S = {"cancels": 15.0, "failover": 10.0, "endurance": 55.0}


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
    patience_s = DEADLINE_S if endpoint.url else ANSWER_S
    async with _endpoint(endpoint) as (backend, settings), aclosing(Straight(settings, os.environ, patience_s=patience_s)) as straight:
        api = await straight.greet()
        usual_s = DELAY_S if backend is not None else straight.usual_s
        names = [name for name in PARTS if name in only or not only]
        measured = [name for name in names if backend is not None or name in OF_YOURS]
        say(f"This takes about {10 * math.ceil(about_s(plan, measured, usual_s) / 10)} seconds.")
        say("starting servers")
        async with Editors.running(plan.servers, [settings]) as editors:
            stage = Stage(plan, settings, backend, editors, {THROUGH: editors, STRAIGHT: straight}, numbers(), say, usual_s)
            await asyncio.gather(*(editor.warm_up(stage.numbers) for editor in editors.all))
            for name in names:
                if name in measured:
                    say(f"{name} ({measured.index(name) + 1} of {len(measured)})")
                parts.append(await PARTS[name](stage))
    return Report(
        endpoint=OWN if backend is not None else f"{straight.base} ({api})",
        busy_cores=busy,
        cores=os.cpu_count() or 1,
        servers=plan.servers,
        rate=plan.rate,
        seconds=plan.seconds,
        parts=tuple(parts),
    )


def about_s(plan: Plan, parts: Sequence[str], usual_s: float) -> float:
    """How long those parts take at an endpoint that answers after `usual_s`."""
    answer_s = min(usual_s, DEADLINE_S)
    seconds = _START_S + _SERVER_S * plan.servers + answer_s
    if "arrivals" in parts:
        seconds += 2 * (plan.seconds + answer_s * len(list(turns(plan.seconds, slice_s(usual_s)))))
    if "saturation" in parts:
        n = len(levels(plan.servers)) if answer_s < DEADLINE_S else 1
        seconds += 2 * TURNS * n * (plan.seconds / len(levels(plan.servers)) / TURNS + SETTLE_S + answer_s)
    if "failover" in parts:
        seconds += plan.seconds * SECONDS_A_SECOND
    return seconds + sum(_OTHERS_S.get(name, 0.0) for name in parts)


@asynccontextmanager
async def _endpoint(endpoint: config.Endpoint) -> AsyncIterator[tuple[BackendProcess | None, config.Endpoint]]:
    if endpoint.url:
        yield None, endpoint
        return
    async with backend_process.running(overhead.ANSWER, STEADY) as backend:
        yield backend, msgspec.structs.replace(endpoint, url=backend.url, api="openai", model="qwen2.5-coder")
