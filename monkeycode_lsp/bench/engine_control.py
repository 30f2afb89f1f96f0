"""What only our engine offers: drafts that the model confirms, and a stop that takes effect at once."""

from __future__ import annotations

import asyncio
import statistics
import time
from contextlib import AsyncExitStack, aclosing

import msgspec

from monkeycode_lsp.bench.engine_report import Answer, Asks, Figure, Part, at_most
from monkeycode_lsp.bench.engine_stage import Stage
from monkeycode_lsp.bench.engine_systems import REST_S, Ours
from monkeycode_lsp.bench.figures import Spread, paired_ratio
from monkeycode_lsp.domain import Prompt

RIGHT_RATIO = 0.5
USELESS_RATIO = 1.05
ABORT_MS = 300.0
_TRIES = 8
_USELESS = """zebra = quantum.harbour(17, "violet")
    for kettle in orchard[::-3]:
        lantern ^= kettle.thunder << 5
    raise PeppermintError(f"{zebra!r} of {lantern:08b}")
"""
_LONG_ANSWER = 96
_PIECES = 3
_PATIENCE_S = 0.5
_PART_READ = 0.25
"""Of the time in which a prompt is read: when the reading is stopped."""


async def drafts(stage: Stage) -> Part:
    """The same answers with no draft, with the answer itself as the draft, and with nonsense as the draft."""
    plan = stage.plan
    ways = {"no draft": "", "right draft": "", "useless draft": _USELESS}
    answers: dict[str, list[Answer]] = {way: [] for way in ways}
    n_differ = 0
    await stage.clear()
    async with AsyncExitStack() as stack:
        without, with_drafts = [
            await stack.enter_async_context(Ours.running(msgspec.structs.replace(stage.settings, drafts=kind), stage.model))
            for kind in ("off", "auto")
        ]
        for before, said in await _long_answers(stage, without):
            for number in range(plan.drafts + 1):
                for way in (*ways, *ways)[number % 3 : number % 3 + 3]:
                    draft = said if way == "right draft" else ways[way]
                    await asyncio.sleep(REST_S)
                    answer = await (with_drafts if draft else without).ask(_ask(stage, before, draft))
                    n_differ += answer.text != said
                    if number:  # before it the prompt was new, and it was not known what a draft costs here
                        answers[way].append(answer)
    if not answers["no draft"]:
        return Part("drafts", "", left_out="The model ends all answers early.")
    plainly = [answer.total_ms for answer in answers["no draft"]]
    ratio = {way: paired_ratio([answer.total_ms for answer in of_one], plainly) for way, of_one in answers.items()}
    return Part(
        "drafts",
        f"An answer of {plan.answer_tokens} tokens to a prompt that was read before.",
        {way: Asks.of(of_one) for way, of_one in answers.items()},
        (
            at_most("whole answer, right draft / no draft", ratio["right draft"], RIGHT_RATIO, "x"),
            at_most("whole answer, useless draft / no draft", ratio["useless draft"], USELESS_RATIO, "x"),
            at_most("answers that a draft changed", float(n_differ), 0.0),
        ),
    )


def _ask(stage: Stage, before: str, draft: str = "") -> Prompt:
    return stage.at(before, max_tokens=stage.plan.answer_tokens, session="drafts", draft=draft)


async def _long_answers(stage: Stage, engine: Ours) -> list[tuple[str, str]]:
    """Up to two places where the model does not end early, with what it says there."""
    stage.learn(engine)
    found: list[tuple[str, str]] = []
    for number in range(_TRIES):
        before = stage.before(stage.fresh(stage.plan.short_tokens // 2), number)
        answer = await engine.ask(_ask(stage, before))
        if answer.n_tokens == stage.plan.answer_tokens:
            found.append((before, answer.text))
        if len(found) == 2:  # noqa: PLR2004 - enough
            break
    return found


async def abort(stage: Stage) -> Part:
    """From the wish to stop until the engine has let go, and until it says something else."""
    ours = await stage.ours()
    other = stage.prompt(stage.fresh(stage.plan.short_tokens // 5), session="other")
    undisturbed = [await ours.ask(other) for _ in range(stage.plan.aborts)][1:]
    generating, token_ms = await _while_generating(stage, ours, other)
    reading, chunk_ms = await _while_reading(stage, ours, other)
    if not generating or not reading:
        return Part("abort", "", left_out="The model was done before it could be stopped.")
    names = {"generating": generating, "reading": reading}
    closed = {name: Spread.of([pair[0] for pair in pairs]) for name, pairs in names.items()}
    following = {name: Spread.of([pair[1] for pair in pairs]) for name, pairs in names.items()}
    return Part(
        "abort",
        f"Stopped in the middle of an answer, and in the middle of a new prompt of about {stage.plan.long_tokens} tokens.",
        {"a short ask, undisturbed": Asks.of(undisturbed)},
        (
            at_most("stopped while generating, p90 (goal: one token)", closed["generating"].p90, max(token_ms, 1.0), "ms"),
            at_most("stopped while reading, p90", closed["reading"].p90, ABORT_MS, "ms"),
            at_most("stopped while reading, p90 (goal: one chunk)", closed["reading"].p90, max(chunk_ms, 1.0), "ms"),
            *(Figure(f"first token of the next ask, stopped while {name}, p50", spread.p50, "ms") for name, spread in following.items()),
        ),
    )


async def _while_generating(stage: Stage, ours: Ours, other: Prompt) -> tuple[list[tuple[float, float]], float]:
    """Milliseconds to stop and to the next first token, of each try; and what one token takes."""
    prompt = stage.prompt(stage.fresh(stage.plan.short_tokens // 5), max_tokens=_LONG_ANSWER, session="stopped", number=1)
    gaps: list[float] = []
    times: list[tuple[float, float]] = []
    for _ in range(stage.plan.aborts):
        await asyncio.sleep(REST_S)
        async with aclosing(ours.engine.stream(prompt)) as stream:
            last = 0.0
            n_pieces = 0
            async for chunk in stream:
                now = time.perf_counter()
                if last and chunk.n_tokens:
                    gaps.append((now - last) * 1e3 / chunk.n_tokens)
                last = now
                n_pieces += 1
                if chunk.finish is not None or n_pieces > _PIECES:
                    break
            if chunk.finish is not None:
                continue
            began = time.perf_counter()
            await stream.aclose()
            closed_ms = (time.perf_counter() - began) * 1e3
        times.append((closed_ms, (await ours.ask(other)).first_ms))
    return times, statistics.median(gaps) if gaps else 0.0


async def _while_reading(stage: Stage, ours: Ours, other: Prompt) -> tuple[list[tuple[float, float]], float]:
    """Milliseconds to stop and to the next first token, of each try; and what one chunk takes."""
    whole = await ours.ask(stage.prompt(stage.fresh(stage.plan.short_tokens), session="measure"))
    token_ms = whole.first_ms / max(1, whole.read)
    wait_s = min(_PATIENCE_S, _PART_READ * token_ms * stage.plan.long_tokens / 1e3)
    times: list[tuple[float, float]] = []
    for number in range(stage.plan.aborts):
        await asyncio.sleep(REST_S)
        prompt = stage.prompt(stage.fresh(stage.plan.long_tokens), session="stopped", number=number)
        reading = asyncio.ensure_future(ours.ask(prompt))
        await asyncio.wait({reading}, timeout=wait_s)
        if reading.done():
            continue
        began = time.perf_counter()
        reading.cancel()
        await asyncio.wait({reading})
        closed_ms = (time.perf_counter() - began) * 1e3
        times.append((closed_ms, (await ours.ask(other)).first_ms))
    return times, token_ms * stage.settings.batch_tokens
