"""Asks that the editor cancels: how soon the endpoint sees that nobody waits any more."""

from __future__ import annotations

import asyncio
import random
import time
from typing import NamedTuple

from monkeycode_lsp.bench import load_report
from monkeycode_lsp.bench.figures import Spread
from monkeycode_lsp.bench.load_report import THROUGH, Part
from monkeycode_lsp.bench.load_stage import SLOW, Stage
from monkeycode_lsp.bench.load_ways import Editor

SHORTEST_S, LONGEST_S = 0.005, 0.2
MOST_EDITORS = 4
"""That cancel at the same time: this is about one ask's way, not about load."""
_PATIENCE_S = 3.0
_SEED = 5


class Cancelled(NamedTuple):
    """One."""

    closed_ms: float | None
    """Until the endpoint saw its connection close; None: never."""
    sent: bool
    """Whether the endpoint saw it at all."""


async def cancels(stage: Stage) -> Part:
    """Each after a random time, of an endpoint that is not going to answer for long."""
    if stage.backend is None:
        return Part("cancels", "", left_out="Only our own endpoint tells when a connection closes.")
    await stage.backend.pace(SLOW)
    editors = stage.editors.all[:MOST_EDITORS]
    draw = random.Random(_SEED)  # noqa: S311 - the same in every run
    waits = [draw.uniform(SHORTEST_S, LONGEST_S) for _ in range(stage.plan.cancels)]
    of_each = await asyncio.gather(*(_of_one(stage, editor, waits[number :: len(editors)]) for number, editor in enumerate(editors)))
    done = [one for of_one in of_each for one in of_one]
    closed = [one.closed_ms for one in done if one.closed_ms is not None]
    return Part(
        "cancels",
        f"{len(done)} asks, each cancelled after {SHORTEST_S * 1e3:g} to {LONGEST_S * 1e3:g} ms: until the endpoint sees the connection close.",
        {THROUGH: Spread.of(closed or [0.0])},
        load_report.cancels(closed, n=len(done), n_unsent=sum(not one.sent for one in done)),
    )


async def _of_one(stage: Stage, editor: Editor, waits: list[float]) -> list[Cancelled]:
    """One after the other."""
    return [await _cancel(stage, editor, wait_s) for wait_s in waits]


async def _cancel(stage: Stage, editor: Editor, wait_s: float) -> Cancelled:
    backend = stage.backend
    assert backend is not None  # noqa: S101 - looked at by the caller
    number = next(stage.numbers)
    cancelled_at: list[float] = []
    await editor.ask_and_cancel(number, wait_s, lambda: cancelled_at.append(time.monotonic()))
    await backend.until(lambda: number in backend.closed, _PATIENCE_S)
    closed = backend.closed.get(number)
    return Cancelled(None if closed is None else (closed - cancelled_at[0]) * 1e3, number in backend.seen)
