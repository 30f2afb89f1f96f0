"""Speed, measured with an engine and a clock that the test moves."""

from __future__ import annotations

import asyncio

import pytest

from monkeycode_lsp.domain import Chunk, Finish, Priority, Usage
from monkeycode_lsp.engines.local import measure


class SlowEngine:
    """Reads and generates at given speeds by a clock of its own; keeps the prompts that it was given."""

    def __init__(self, *, read_s=0.0, token_s=0.0, n_tokens=24, usage=True, hangs=False):
        self.now = 0.0
        self.prompts = []
        self.closed = 0
        self._read_s = read_s
        self._token_s = token_s
        self._n_tokens = n_tokens
        self._usage = usage
        self._hangs = hangs

    async def ready(self):
        return None

    async def stream(self, prompt):
        self.prompts.append(prompt)
        n_read = len(prompt.prefix.split())
        try:
            self.now += self._read_s * n_read
            if self._hangs:
                await asyncio.Event().wait()
            for n in range(min(self._n_tokens, prompt.max_tokens)):
                self.now += self._token_s if n else 0.0
                usage = Usage(reused=0, read=n_read) if self._usage and not n else None
                yield Chunk(text="x", n_tokens=1, usage=usage)
            yield Chunk(text="", finish=Finish.LENGTH)
        finally:
            self.closed += 1

    def clock(self):
        return self.now


async def check(engine, within_s=60.0):
    return await measure.measure(engine, within_s=within_s, clock=engine.clock)


async def test_both_speeds_are_measured():
    speed = await check(SlowEngine(read_s=0.01, token_s=0.05))
    assert speed.read_tokens == 256
    assert speed.read_per_s == pytest.approx(100)
    assert speed.generated_per_s == pytest.approx(20)


async def test_the_prompts_wait_behind_everybody_and_are_never_the_same():
    engine = SlowEngine(read_s=0.01, token_s=0.05)
    await check(engine)
    await check(engine)
    assert {prompt.priority for prompt in engine.prompts} == {Priority.BATCH}
    assert len({prompt.prefix for prompt in engine.prompts}) == 4


async def test_a_model_that_says_too_little_has_no_speed_of_generation():
    speed = await check(SlowEngine(read_s=0.01, token_s=0.05, n_tokens=4))
    assert speed.generated_per_s is None
    assert speed.read_per_s == pytest.approx(100)


async def test_an_engine_that_counts_nothing_cannot_be_measured():
    assert await check(SlowEngine(read_s=0.01, token_s=0.05, usage=False)) is None


async def test_an_engine_that_says_nothing_cannot_be_measured():
    assert await check(SlowEngine(read_s=0.01, n_tokens=0)) is None


async def test_the_time_is_bounded_and_the_stream_is_closed():
    engine = SlowEngine(hangs=True)
    assert await check(engine, within_s=0.01) is None
    assert engine.closed == 1
