"""More and more asks at the same time, until the endpoint does not answer more of them a second."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

from monkeycode_lsp.bench import load_report
from monkeycode_lsp.bench.backend import Pace
from monkeycode_lsp.bench.load_report import STRAIGHT, THROUGH, Part, Told
from monkeycode_lsp.bench.load_stage import DELAY_S, SLOTS_A_SERVER, SPREAD, Stage
from monkeycode_lsp.bench.load_ways import Way

SETTLE_S = 0.5
"""From the start of a level until answers are counted; in short runs as long as the counting."""
TURNS = 2
_MOST_A_SERVER = 4
_GROWTH = 1.05
_FEW = 4
"""Answers of a level, straight: fewer tell nothing, and more asks would only wait longer."""
_LEVELS = 4


def levels(n_servers: int) -> list[int]:
    """How many asks are under way: doubled up to what every editor keeps open at the most."""
    most = n_servers * _MOST_A_SERVER
    return [n for step in reversed(range(_LEVELS)) if (n := most >> step)]


def is_full(rates: Mapping[int, float]) -> bool:
    """Whether the last level brought nothing over the one before."""
    last = list(rates.values())[-2:]
    return len(last) > 1 and last[1] < _GROWTH * last[0]


async def saturation(stage: Stage) -> Part:
    """Closed loop: who is answered asks again."""
    plan = stage.plan
    level_s = plan.seconds / _LEVELS / TURNS
    slots = SLOTS_A_SERVER * plan.servers
    if stage.backend is not None:
        await stage.backend.pace(Pace(DELAY_S, SPREAD, slots))
    told: dict[str, list[Told]] = {THROUGH: [], STRAIGHT: []}
    rates: dict[str, dict[int, float]] = {THROUGH: {}, STRAIGHT: {}}
    stopped = ""
    for n in levels(plan.servers):
        found: dict[str, list[float]] = {THROUGH: [], STRAIGHT: []}
        for way in (THROUGH, STRAIGHT, STRAIGHT, THROUGH)[: 2 * TURNS]:
            rate, asks = await _level(stage.ways[way], n, level_s, plan.servers, stage.numbers)
            found[way].append(rate)
            told[way] += asks
        for way, of_one in found.items():
            rates[way][n] = sum(of_one) / len(of_one)
        if stage.backend is None and (answers := rates[STRAIGHT][n] * level_s * TURNS) < _FEW:
            stopped = (
                f" Stopped at {n} under way: {answers:.0f} answers in {level_s * TURNS:.1f} s are too few to compare; --seconds gives more."
            )
            break
        if is_full(rates[STRAIGHT]):
            break
    about = "Who is answered asks again at once; more and more ask"
    return Part(
        "saturation",
        f"{about}, of an endpoint that answers {slots} at a time."
        if stage.backend is not None
        else f"{about}.{stopped}{load_report.too_slow(told)}",
        {way: load_report.spread(of_one) for way, of_one in told.items()},
        (*load_report.saturation(rates, judged=not stopped), load_report.failed(told[THROUGH])),
    )


async def _level(way: Way, n: int, seconds: float, n_editors: int, numbers: Iterator[int]) -> tuple[float, list[Told]]:
    """Answers with text a second once it has settled, and every ask."""
    loop = asyncio.get_running_loop()
    counted_from = loop.time() + min(SETTLE_S, seconds)
    until = counted_from + seconds
    told: list[Told] = []
    n_counted = 0

    async def keep_asking(who: int) -> None:
        nonlocal n_counted
        while loop.time() < until:
            one = await way.ask(who, next(numbers))
            told.append(one)
            n_counted += one.kind == "text" and counted_from <= loop.time() < until

    await asyncio.gather(*(keep_asking(number % n_editors) for number in range(n)))
    return n_counted / seconds, told
