"""How fast an engine reads and answers, measured with one prompt that no KV cache knows.

The prompt waits behind everybody else's, and is made of words at random: nothing that was read before helps, and no
draft guesses what follows.
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import aclosing
from typing import Protocol

import msgspec

from monkeycode_lsp.domain import Plain, Priority, Prompt, Sampling
from monkeycode_lsp.engines.base import Engine
from monkeycode_lsp.engines.local import hardware

N_WORDS = 256
"""Each is about one token."""
N_GENERATED = 24
_FEWEST_GENERATED = 8
"""Fewer say nothing about speed: the model has ended."""
_WARM_UP_TOKENS = 2
_LOOK_S = 0.3
_WORDS = (
    "table river seven under bright copper window garden letter number circle winter engine paper silver market bridge "
    "orange simple planet rocket filter option buffer thread socket kernel module import return branch commit header"
)


class Speed(msgspec.Struct, frozen=True):
    """What was measured."""

    read_tokens: int
    read_per_s: float
    generated_per_s: float | None = None
    """None: the model said too little to tell."""
    busy_cores: float | None = None
    """Processor cores that were at work for something else; None: the system does not say."""


class Clock(Protocol):
    """Seconds that pass."""

    def __call__(self) -> float: ...


async def measure(engine: Engine, *, within_s: float, clock: Clock = time.perf_counter) -> Speed | None:
    """Read about 256 tokens and generate 24; None: it was not over in time, or the engine does not count tokens.

    Raises `EngineError`.
    """
    await engine.ready()
    busy = await asyncio.to_thread(hardware.busy_cores, _LOOK_S)
    try:
        async with asyncio.timeout(within_s):
            await _ask(engine, _prompt(8, max_tokens=_WARM_UP_TOKENS), clock)
            answer = await _ask(engine, _prompt(N_WORDS, max_tokens=N_GENERATED), clock)
    except TimeoutError:
        return None
    if answer.first_s is None or not answer.read:
        return None
    later = answer.n_generated - answer.n_first
    per_s = later / (answer.last_s - answer.first_s) if later >= _FEWEST_GENERATED and answer.last_s > answer.first_s else None
    # The first token comes out of the same decode as the prompt's end; it costs no decode of its own.
    return Speed(answer.read, answer.read / answer.first_s, per_s, busy)


class _Answer(msgspec.Struct):
    """One answer as it comes in: the only thing that changes is this value, in `_ask`."""

    read: int | None = None
    n_generated: int = 0
    n_first: int = 0
    first_s: float | None = None
    last_s: float = 0.0


async def _ask(engine: Engine, prompt: Prompt, clock: Clock) -> _Answer:
    answer = _Answer()
    started = clock()
    async with aclosing(engine.stream(prompt)) as chunks:
        async for chunk in chunks:
            if chunk.n_tokens:
                answer.last_s = clock() - started
                answer.n_generated += chunk.n_tokens
                if answer.first_s is None:
                    answer.first_s, answer.n_first = answer.last_s, chunk.n_tokens
            if chunk.usage is not None and chunk.usage.read is not None:
                answer.read = chunk.usage.read
    return answer


def _prompt(n_words: int, *, max_tokens: int) -> Prompt:
    text = " ".join(random.choices(_WORDS.split(), k=n_words))  # noqa: S311 - no secret
    return Prompt(
        segments=(Plain(text),),
        prefix=text,
        suffix="",
        max_tokens=max_tokens,
        sampling=Sampling(temperature=1.2, min_p=0.0),
        priority=Priority.BATCH,
        session="speed",
        fim=False,
    )
