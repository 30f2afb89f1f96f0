"""What the parts of the load benchmark share: the plan, the endpoint, the two ways to it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from monkeycode_lsp import config
from monkeycode_lsp.bench.backend import Pace
from monkeycode_lsp.bench.backend_process import BackendProcess
from monkeycode_lsp.bench.load_report import Told
from monkeycode_lsp.bench.load_ways import Editors, Way

DELAY_S = 0.25
SLOTS_A_SERVER = 2
"""Of our own endpoint when it is to be full: 16 servers and 250 ms make 128 answers a second, of which two cores are not full."""
SPREAD = 0.25
STEADY = Pace(DELAY_S)
SLOW = Pace(60.0)


class Plan(msgspec.Struct, frozen=True):
    """How much is measured."""

    servers: int = 16
    rate: float = 50.0
    """Asks a second of all servers together."""
    seconds: float = 20.0
    """Of arrivals, each way; other parts take their time from it."""
    cancels: int = 200
    endurance: int = 5000
    """Asks of one server."""


class Stage(NamedTuple):
    """One run."""

    plan: Plan
    endpoint: config.Endpoint
    backend: BackendProcess | None
    """None: the endpoint is the user's own."""
    editors: Editors
    ways: Mapping[str, Way]
    numbers: Iterator[int]
    say: Callable[[str], None]
    usual_s: float = DELAY_S
    """What one answer takes when nobody else asks."""


class Ask(NamedTuple):
    """When, and by which editor."""

    at_s: float
    who: int


async def play(asks: list[Ask], way: Way, numbers: Iterator[int]) -> list[Told]:
    """Each at its time, whatever became of those before."""
    loop = asyncio.get_running_loop()
    began = loop.time()

    async def one(ask: Ask) -> Told:
        late_ms = (loop.time() - began - ask.at_s) * 1e3
        return (await way.ask(ask.who, next(numbers)))._replace(late_ms=late_ms)

    tasks = []
    for ask in asks:
        await asyncio.sleep(max(0.0, began + ask.at_s - loop.time()))
        tasks.append(asyncio.create_task(one(ask)))
    return await asyncio.gather(*tasks)


def numbers() -> Iterator[int]:
    """Of places; none twice in a run."""
    return itertools.count(1)
