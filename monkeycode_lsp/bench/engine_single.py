"""One stream at a time, all systems in turn: cold, warm, one letter more, an edit in the middle, two documents in turn."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from monkeycode_lsp.bench import engine_text
from monkeycode_lsp.bench.engine_report import DIRECT, OURS, SERVER, Answer, Figure, Part, asks, at_least, at_most, first_ratio, speed_ratio
from monkeycode_lsp.bench.engine_stage import Stage, n_prompt
from monkeycode_lsp.bench.engine_systems import take_turns

FIRST_RATIO = 1.05
SPEED_RATIO = 0.95
LETTER_SHARE = 0.02
_TYPED = "rest_of_the_line_that_is_typed"
_SHORT_ANSWER = 8


async def cold(stage: Stage) -> Part:
    plan = stage.plan
    systems = await stage.systems()
    prompts = [stage.prompt(stage.fresh(plan.short_tokens), max_tokens=_SHORT_ANSWER, number=n) for n in range(plan.cold)]
    answers = await take_turns(systems, prompts)
    return Part(
        "cold",
        f"A new prompt of {n_prompt(answers[OURS][0])} tokens, {_SHORT_ANSWER} tokens answered.",
        asks(answers),
        (
            Figure("read tokens per second", statistics.median(answer.read / answer.first_ms * 1e3 for answer in answers[OURS])),
            *first_ratio(answers, DIRECT, FIRST_RATIO),
            *first_ratio(answers, SERVER),
        ),
    )


async def warm(stage: Stage) -> Part:
    plan = stage.plan
    systems = await stage.systems()
    prompt = stage.prompt(stage.fresh(plan.short_tokens), max_tokens=plan.answer_tokens)
    await take_turns(systems, [prompt])
    answers = await take_turns(systems, [prompt] * plan.warm)
    return Part(
        "warm",
        f"The same prompt again, up to {plan.answer_tokens} tokens answered.",
        asks(answers),
        (
            at_least("prompt tokens reused", 1 - _most_read(answers), 1 - LETTER_SHARE, "share"),
            *first_ratio(answers, DIRECT, FIRST_RATIO),
            *speed_ratio(answers, DIRECT, SPEED_RATIO),
            *first_ratio(answers, SERVER),
            *speed_ratio(answers, SERVER),
        ),
    )


async def letter(stage: Stage) -> Part:
    plan = stage.plan
    systems = await stage.systems()
    text = stage.fresh(plan.long_tokens) + engine_text.HEADS[0]
    n_letters = min(plan.letters, len(_TYPED))
    prompts = [stage.at(text + _TYPED[:n], max_tokens=_SHORT_ANSWER, session="letter") for n in range(n_letters + 1)]
    await take_turns(systems, prompts[:1])
    answers = await take_turns(systems, prompts[1:])
    return Part(
        "letter",
        f"One letter more at the end of a prompt of {n_prompt(answers[OURS][0])} tokens.",
        asks(answers),
        (
            at_most("prompt tokens read again", _most_read(answers), LETTER_SHARE, "share"),
            *first_ratio(answers, DIRECT, FIRST_RATIO),
            *speed_ratio(answers, DIRECT, SPEED_RATIO),
            *first_ratio(answers, SERVER),
        ),
    )


async def edit(stage: Stage) -> Part:
    plan = stage.plan
    systems = await stage.systems()
    text = stage.fresh(plan.long_tokens)
    middle = text.index("\n", len(text) // 2) + 1
    texts = [text, *(f"{text[:middle]}edited_{n} = {n}\n{text[middle:]}" for n in range(plan.edits))]
    prompts = [stage.prompt(edited, session="edit") for edited in texts]
    await take_turns(systems, prompts[:1])
    answers = await take_turns(systems, prompts[1:])
    # Asked at the end, because it leaves that half alone in the KV cache.
    n_head = n_prompt(await systems[0].ask(stage.at(text[:middle], after="")))
    over = max(answer.read - (n_prompt(answer) - n_head) for answer in answers[OURS])
    return Part(
        "edit",
        f"A line put into the middle of a prompt of {n_prompt(answers[OURS][0])} tokens: what follows it is read again.",
        asks(answers),
        (
            at_most("tokens read beyond what follows the edit", float(over), float(stage.settings.batch_tokens)),
            *first_ratio(answers, DIRECT),
            *first_ratio(answers, SERVER),
        ),
    )


async def documents(stage: Stage) -> Part:
    plan = stage.plan
    systems = await stage.systems()
    both = [stage.prompt(stage.fresh(plan.short_tokens), max_tokens=_SHORT_ANSWER, session=f"document {n}", number=n) for n in range(2)]
    await take_turns(systems, both)
    answers = await take_turns(systems, both * plan.swaps)
    return Part(
        "documents",
        f"Two documents of {n_prompt(answers[OURS][0])} tokens in turn.",
        asks(answers),
        (
            at_least("prompt tokens reused", 1 - _most_read(answers), 1 - LETTER_SHARE, "share"),
            *first_ratio(answers, DIRECT),
            *first_ratio(answers, SERVER),
        ),
    )


def _most_read(answers: Mapping[str, Sequence[Answer]]) -> float:
    """The largest share of a prompt that ours had to read."""
    return max(answer.read / n_prompt(answer) for answer in answers[OURS])
