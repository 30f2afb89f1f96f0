"""Tokens counted by the engine process, beside what it decodes."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from monkeycode_lsp.engines.counting import Counting
from monkeycode_lsp.engines.local.host import service
from monkeycode_lsp.engines.local.native import NativeEngine


async def test_texts_are_counted_over_there(engine):
    asked = engine()
    assert isinstance(asked, Counting)
    await asked.ready()
    assert await asked.count(["abc\n", "", "ä"]) == [4, 0, 1]


async def test_nothing_is_started_to_count(engine, events):
    assert await engine().count(["abc"]) is None
    assert events.so_far() == []


async def test_counting_does_not_wait_for_what_is_decoded(engine, prompt):
    asked = engine(mode="endless")
    async with aclosing(asked.stream(prompt("busy"))) as stream:
        await anext(stream)
        assert await asked.count(["abc"]) == [3]
        assert (await anext(stream)).text


async def test_too_much_at_once_is_not_counted(engine):
    asked = engine()
    await asked.ready()
    assert await asked.count(["x" * service._MOST_COUNTED, "x"]) is None
    assert await asked.count(["x"]) == [1]


@pytest.mark.parametrize("text", ["\ud800", "x" * (17 * 1024 * 1024)])
async def test_what_no_frame_can_hold_is_not_counted(engine, text):
    asked = engine()
    await asked.ready()
    assert await asked.count([text]) is None
    assert await asked.count(["x"]) == [1]


async def test_a_process_that_goes_leaves_nobody_waiting(engine, prompt):
    asked: NativeEngine = engine(mode="deaf")
    await asked.ready()
    running = asked._tenant.running
    counts = [asyncio.create_task(asked.count(["abc"])) for _ in range(3)]
    running.link.kill()
    assert all(counted in ([3], None) for counted in await asyncio.gather(*counts))
