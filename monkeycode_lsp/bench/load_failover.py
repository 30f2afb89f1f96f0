"""Two endpoints, of which one dies in the middle and comes back."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import AsyncExitStack

import msgspec

from monkeycode_lsp.bench import load_report, overhead
from monkeycode_lsp.bench.backend_process import BackendProcess, running
from monkeycode_lsp.bench.load_arrivals import schedule
from monkeycode_lsp.bench.load_report import THROUGH, Part
from monkeycode_lsp.bench.load_stage import STEADY, Stage, play
from monkeycode_lsp.bench.load_ways import Editors

MOST_EDITORS = 4
ALIVE, DEAD = 0.25, 0.15
"""Shares of the time: before the death, and until the return; the rest comes after it."""
SECONDS_A_SECOND = 1.25
_MOST_RATE = 20.0
_SEED = 6


async def failover(stage: Stage) -> Part:
    """Arrivals go on while one endpoint is killed and started again at the same address."""
    if stage.backend is None:
        return Part("failover", "", left_out="Only endpoints of our own are killed.")
    n_editors = min(MOST_EDITORS, stage.plan.servers)
    seconds = stage.plan.seconds * SECONDS_A_SECOND
    rate = min(_MOST_RATE, stage.plan.rate)
    draw = random.Random(_SEED)  # noqa: S311 - the same arrivals in every run
    async with AsyncExitStack() as stack:
        steady, mortal = [await stack.enter_async_context(running(overhead.ANSWER, STEADY)) for _ in range(2)]
        endpoints = [msgspec.structs.replace(stage.endpoint, url=backend.url) for backend in (mortal, steady)]
        editors = await stack.enter_async_context(Editors.running(n_editors, endpoints))
        await asyncio.gather(*(editor.warm_up(stage.numbers) for editor in editors.all))
        asks = list(schedule(rate, seconds, n_editors, draw))
        playing = asyncio.create_task(play(asks, editors, stage.numbers))
        await asyncio.sleep(ALIVE * seconds)
        await mortal.kill()
        await asyncio.sleep(DEAD * seconds)
        reborn = await BackendProcess.start(overhead.ANSWER, STEADY, port=mortal.port)
        stack.push_async_callback(reborn.aclose)
        back_at = time.monotonic()
        told = await playing
    n_steady = sum(at > back_at for at in steady.seen.values())
    back_s = min(reborn.seen.values(), default=back_at + seconds) - back_at
    return Part(
        "failover",
        f"{load_report.a_second(rate)} from {n_editors} editors to two endpoints, of which one is killed and comes back after {DEAD * seconds:.1f} s.",
        {THROUGH: load_report.spread(told)},
        load_report.failover(told, back_s=back_s, share_after=len(reborn.seen) / max(1, len(reborn.seen) + n_steady)),
    )
