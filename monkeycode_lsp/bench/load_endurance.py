"""Thousands of asks, half of them cancelled: whether one server grows."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

from monkeycode_lsp.bench import load_report, processes
from monkeycode_lsp.bench.backend import Pace
from monkeycode_lsp.bench.load_report import THROUGH, Part, Size, Told
from monkeycode_lsp.bench.load_stage import Stage
from monkeycode_lsp.bench.load_ways import Editor, Editors

QUICK = Pace(0.02, 0.5)
LANES = 4
"""Asks at the same time."""
WARM_UP = 0.3
"""Share of the asks after which nothing should grow any more."""
MEMORY_BYTES = 262_144
"""What may be remembered: so little that it is full after the warm-up."""
_LONGEST_WAIT_S = 0.03
_SETTLE_S = 1.0
_SEED = 7


async def endurance(stage: Stage) -> Part:
    """The size of one server after the warm-up and at the end."""
    if stage.backend is None:
        return Part("endurance", "", left_out="Your endpoint is not asked thousands of times.")
    await stage.backend.pace(QUICK)
    draw = random.Random(_SEED)  # noqa: S311 - the same in every run
    n_warm = int(stage.plan.endurance * WARM_UP)
    async with Editors.running(1, [stage.endpoint], cache={"memoryBytes": MEMORY_BYTES}) as editors:
        (editor,) = editors.all
        await editor.warm_up(stage.numbers)
        told = await _ask(editor, n_warm, stage.numbers, draw)
        before = await _size(editor)
        told += await _ask(editor, stage.plan.endurance - n_warm, stage.numbers, draw)
        after = await _size(editor)
    if not after.files:
        return Part("endurance", "", left_out="This system does not tell how large a process is.")
    return Part(
        "endurance",
        f"{stage.plan.endurance} asks of one server, half of them cancelled; its size after the first {n_warm} and at the end.",
        {THROUGH: load_report.spread(told)},
        load_report.endurance(before, after, told),
    )


async def _size(editor: Editor) -> Size:
    await asyncio.sleep(_SETTLE_S)  # writes that wait, connections that close
    pid = editor.client.process.pid
    return Size(files=processes.open_files(pid), threads=processes.threads(pid), mb=processes.private_mb(pid))


async def _ask(editor: Editor, n: int, numbers: Iterator[int], draw: random.Random) -> list[Told]:
    left = iter(range(n))

    async def lane() -> list[Told]:
        told = []
        for number in left:
            if number % 2:
                await editor.ask_and_cancel(next(numbers), draw.uniform(0.0, _LONGEST_WAIT_S))
            else:
                told.append(await editor.ask(next(numbers)))
        return told

    return [one for of_lane in await asyncio.gather(*(lane() for _ in range(LANES))) for one in of_lane]
