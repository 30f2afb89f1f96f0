"""Asks that come when they come: open loop, Poisson arrivals, in turn through our servers and straight."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from monkeycode_lsp.bench import load_report
from monkeycode_lsp.bench.load_report import STRAIGHT, THROUGH, Part, Told
from monkeycode_lsp.bench.load_stage import STEADY, Ask, Stage, play

SLICE_S = 1.25
"""The ways take turns so often, because the machine is never equally busy for long."""
_SEED = 5
_OF_YOURS = " Ours ends a stream when it has enough, and waits no longer than somebody who types would: it can be faster than straight."


def schedule(rate: float, seconds: float, n_editors: int, draw: random.Random) -> Iterator[Ask]:
    """Poisson arrivals; each editor is as likely as the others."""
    at_s = draw.expovariate(rate)
    while at_s < seconds:
        yield Ask(at_s, draw.randrange(n_editors))
        at_s += draw.expovariate(rate)


def turns(seconds: float) -> Iterator[tuple[float, tuple[str, str]]]:
    """Slices of the time, and in which order the ways take them."""
    n = max(1, math.ceil(seconds / SLICE_S))
    for number in range(n):
        yield seconds / n, (STRAIGHT, THROUGH) if number % 2 else (THROUGH, STRAIGHT)


async def arrivals(stage: Stage) -> Part:
    """The same arrivals both ways."""
    plan, draw = stage.plan, random.Random(_SEED)  # noqa: S311 - the same arrivals in every run
    if stage.backend is not None:
        await stage.backend.pace(STEADY)
    slices: list[dict[str, list[Told]]] = []
    for seconds, order in turns(plan.seconds):
        asks = list(schedule(plan.rate, seconds, plan.servers, draw)) or [Ask(0.0, 0)]
        slices.append({way: await play(asks, stage.ways[way], stage.numbers) for way in order})
    return Part(
        "arrivals",
        f"{plan.rate:g} asks a second from {plan.servers} editors, each at a new place, whatever became of those before."
        + (_OF_YOURS if stage.backend is None else ""),
        {way: load_report.spread([one for part in slices for one in part[way]]) for way in (THROUGH, STRAIGHT)},
        load_report.arrivals(slices, judged=stage.backend is not None),
    )
