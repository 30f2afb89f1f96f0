"""Many at once: four windows with a document each, and parallel generations against a llama-server with as many slots."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack

import msgspec

from monkeycode_lsp.bench.engine_report import DIRECT, OURS, SERVER, Answer, Figure, Part, asks, at_least
from monkeycode_lsp.bench.engine_stage import Stage, n_prompt
from monkeycode_lsp.bench.engine_systems import REST_S, Ours, System
from monkeycode_lsp.domain import Prompt

PARALLEL_RATIO = 1.0
_CONTEXT = 1024
_SHARED_TOKENS = 200


async def windows(stage: Stage) -> Part:
    """As the product runs: a client for each window."""
    plan = stage.plan
    first, *others = [system for system in await stage.systems() if system.name != DIRECT]
    prompts = [
        stage.prompt(stage.fresh(plan.short_tokens), max_tokens=plan.answer_tokens, session=f"window {n}", number=n)
        for n in range(plan.windows)
    ]
    async with AsyncExitStack() as stack:
        more = [await stack.enter_async_context(Ours.running(stage.settings, stage.model)) for _ in prompts[1:]]
        crowds: dict[str, list[System]] = {first.name: [first, *more]} | {other.name: [other] * len(prompts) for other in others}
        answers: dict[str, list[Answer]] = {name: [] for name in crowds}
        rates: dict[str, list[float]] = {name: [] for name in crowds}
        for number in range(plan.window_rounds + 1):
            for name, crowd in crowds.items():
                found, rate = await _together(crowd, prompts)
                if number:  # before it the documents were new
                    answers[name] += found
                    rates[name].append(rate)
    return Part(
        "windows",
        f"{plan.windows} windows ask at the same time, each in a document of {n_prompt(answers[OURS][0])} tokens that was read before.",
        asks(answers),
        _rates("tokens per second of all", rates),
    )


async def parallel(stage: Stage) -> Part:
    """Prompts that begin alike, as many as there are slots."""
    await stage.clear()
    answers: dict[str, list[Answer]] = {}
    figures: list[Figure] = []
    for n_slots in stage.plan.parallel:
        settings = msgspec.structs.replace(stage.settings, slots=n_slots, context_tokens=_CONTEXT)
        async with AsyncExitStack() as stack:
            systems = await stage.start(stack, settings, leave_out=[DIRECT])
            found, rates = await _rounds(stage, systems, n_slots)
        answers |= {f"{name} x {n_slots}": of_one for name, of_one in found.items()}
        figures += _rates(f"tokens per second of {n_slots}", rates, goal=PARALLEL_RATIO)
    return Part("parallel", "Generations at the same time, whose prompts begin alike.", asks(answers), tuple(figures))


async def _rounds(stage: Stage, systems: Sequence[System], n: int) -> tuple[dict[str, list[Answer]], dict[str, list[float]]]:
    plan = stage.plan
    shared = stage.fresh(_SHARED_TOKENS)
    answers: dict[str, list[Answer]] = {system.name: [] for system in systems}
    rates: dict[str, list[float]] = {system.name: [] for system in systems}
    for number in range(plan.parallel_rounds + 1):
        tails = [f"# {number} {at}\n" for at in range(n)]
        prompts = [stage.prompt(shared + tail, max_tokens=plan.answer_tokens, number=at) for at, tail in enumerate(tails)]
        for system in systems if number % 2 else reversed(systems):
            found, rate = await _together([system] * n, prompts)
            if number:  # before it what they share was new
                answers[system.name] += found
                rates[system.name].append(rate)
    return answers, rates


async def _together(crowd: Sequence[System], prompts: Sequence[Prompt]) -> tuple[list[Answer], float]:
    """All at once; their answers, and tokens per second of all together."""
    await asyncio.sleep(REST_S)
    began = time.perf_counter()
    answers = await asyncio.gather(*(system.ask(prompt) for system, prompt in zip(crowd, prompts, strict=True)))
    return answers, sum(answer.n_tokens for answer in answers) / (time.perf_counter() - began)


def _rates(name: str, rates: dict[str, list[float]], *, goal: float | None = None) -> tuple[Figure, ...]:
    figures = [Figure(f"{name}, {system}", statistics.median(of_one)) for system, of_one in rates.items()]
    if SERVER in rates:
        ratio = statistics.median(our / their for our, their in zip(rates[OURS], rates[SERVER], strict=True))
        label = f"{name} / {SERVER}"
        figures.append(Figure(label, ratio, "x") if goal is None else at_least(label, ratio, goal, "x"))
    return tuple(figures)
