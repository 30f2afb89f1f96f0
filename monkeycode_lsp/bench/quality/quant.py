"""Any GGUF files beside each other: memory, speed, and how well they fill holes.  Our engine runs them, without drafts."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from monkeycode_lsp.bench import engine_text, processes
from monkeycode_lsp.bench.engine_report import Answer
from monkeycode_lsp.bench.engine_systems import Ours, own_home
from monkeycode_lsp.bench.quality import sample, scores
from monkeycode_lsp.bench.quality.sample import Hole
from monkeycode_lsp.config import Local

_COLD_TOKENS = 512
_COLD = 3
_WRITTEN = 32
_LINE_TOKENS = 64


class File(msgspec.Struct, frozen=True, rename="camel"):
    """One model file, measured."""

    path: str
    model: str
    size_bytes: int
    memory_mb: float
    """Resident memory of the engine process; 0: the system does not tell."""
    first_ms: float
    """To the first token of a new prompt, median."""
    prompt_tokens: int
    read_tokens_per_second: float
    write_tokens_per_second: float
    asks_per_second: float
    """Holes filled, one after the other, each in a new place."""
    n: int
    exact: float
    """Share of the holes that were filled with the very text."""
    similarity: float
    """Mean of 1 - edit distance / length."""
    fills: bool
    """Whether it was asked to fill in the middle; else it saw what stands before the hole only."""


class Report(msgspec.Struct, frozen=True):
    """All files, in the order in which they were given."""

    files: tuple[File, ...]
    version: int = 1


async def compare(models: Sequence[Path], *, settings: Local, n: int, say: Callable[[str], None] = lambda _: None) -> Report:
    """One file after the other; needs llama-cpp-python."""
    holes = sample.sample(engine_text.library(), n)
    settings = msgspec.structs.replace(settings, drafts="off", draft_model="", nice=0)
    files: list[File] = []
    for model in models:
        say(model.name)
        with own_home() as home:
            async with Ours.running(settings, model) as ours:
                files.append(await _measure(ours, model, home, holes))
    return Report(tuple(files))


async def _measure(ours: Ours, model: Path, home: Path, holes: Sequence[Hole]) -> File:
    n_bytes = (await asyncio.to_thread(model.stat)).st_size
    family = ours.model.family
    numbers = itertools.count()
    texts = [engine_text.code(engine_text.library(), next(numbers), _COLD_TOKENS) for _ in range(_COLD + 1)]
    cold = [await ours.ask(engine_text.ask(text, family, max_tokens=_WRITTEN)) for text in texts][1:]
    began = time.perf_counter()
    said = [await _fill(ours, hole) for hole in holes]
    seconds = time.perf_counter() - began
    speeds = [answer.tokens_per_second for answer in cold if answer.tokens_per_second]
    return File(
        path=str(model),
        model=ours.model.name,
        size_bytes=n_bytes,
        memory_mb=sum(processes.resident_mb(pid) for pid in processes.of_home(home)),
        first_ms=statistics.median(answer.first_ms for answer in cold),
        prompt_tokens=round(statistics.median(answer.reused + answer.read for answer in cold)),
        read_tokens_per_second=statistics.median(answer.read / answer.first_ms * 1e3 for answer in cold),
        write_tokens_per_second=statistics.median(speeds) if speeds else 0.0,
        asks_per_second=len(holes) / seconds,
        n=len(holes),
        exact=statistics.mean(scores.is_exact(answer.text, hole.expected) for answer, hole in zip(said, holes, strict=True)),
        similarity=statistics.mean(scores.similarity(answer.text, hole.expected) for answer, hole in zip(said, holes, strict=True)),
        fills=family is not None,
    )


async def _fill(ours: Ours, hole: Hole) -> Answer:
    prompt = engine_text.ask(hole.prefix, ours.model.family, max_tokens=_LINE_TOKENS, after=hole.suffix, stop=("\n",))
    return await ours.ask(prompt)
