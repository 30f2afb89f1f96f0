"""Asks that come when they come: open loop, Poisson arrivals, in turn through our servers and straight."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from monkeycode_lsp.bench import load_report
from monkeycode_lsp.bench.load_report import STRAIGHT, THROUGH, Part, Told
from monkeycode_lsp.bench.load_stage import STEADY, Ask, Stage, play
from monkeycode_lsp.bench.load_ways import DEADLINE_S

SLICE_S = 1.25
"""The ways take turns so often, because the machine is never equally busy for long."""
_ANSWERS = 4.0
"""A slice is at least so many answers long, since its end is waited for."""
_SEED = 5
_OF_YOURS = f" Neither way waits longer than {DEADLINE_S:g} s."


def schedule(rate: float, seconds: float, n_editors: int, draw: random.Random) -> Iterator[Ask]:
    """Poisson arrivals; each editor is as likely as the others."""
    at_s = draw.expovariate(rate)
    while at_s < seconds:
        yield Ask(at_s, draw.randrange(n_editors))
        at_s += draw.expovariate(rate)


def slice_s(usual_s: float) -> float:
    """How long a slice is, for an endpoint that answers after `usual_s`."""
    return max(SLICE_S, _ANSWERS * min(usual_s, DEADLINE_S))


def turns(seconds: float, longest_s: float = SLICE_S) -> Iterator[tuple[float, tuple[str, str]]]:
    """Slices of the time, and in which order the ways take them."""
    n = max(1, math.ceil(seconds / longest_s))
    for number in range(n):
        yield seconds / n, (STRAIGHT, THROUGH) if number % 2 else (THROUGH, STRAIGHT)


async def arrivals(stage: Stage) -> Part:
    """The same arrivals both ways."""
    plan, draw = stage.plan, random.Random(_SEED)  # noqa: S311 - the same arrivals in every run
    if stage.backend is not None:
        await stage.backend.pace(STEADY)
    slices: list[dict[str, list[Told]]] = []
    for seconds, order in turns(plan.seconds, slice_s(stage.usual_s)):
        asks = list(schedule(plan.rate, seconds, plan.servers, draw)) or [Ask(0.0, 0)]
        slices.append({way: await play(asks, stage.ways[way], stage.numbers) for way in order})
    told = {way: [one for part in slices for one in part[way]] for way in (THROUGH, STRAIGHT)}
    return Part(
        "arrivals",
        f"{load_report.a_second(plan.rate)} from {plan.servers} editors, each at a new place, whatever became of those before."
        + (_OF_YOURS + load_report.too_slow(told) if stage.backend is None else ""),
        {way: load_report.spread(of_one) for way, of_one in told.items()},
        load_report.arrivals(slices, judged=stage.backend is not None),
    )
