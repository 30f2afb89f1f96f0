"""The newest ask wins."""

import asyncio

import pytest

from monkeycode_lsp.errors import SupersededError
from monkeycode_lsp.turn import Turn


async def test_a_newer_claim_supersedes_at_once_and_the_loser_cleans_up():
    turn, cleaned, hold = Turn(), asyncio.Event(), asyncio.Event()

    async def work():
        try:
            await hold.wait()
        finally:
            cleaned.set()

    old = asyncio.create_task(turn.run(turn.claim("a"), work()))
    await asyncio.sleep(0)
    turn.claim("a")
    with pytest.raises(SupersededError):
        await old
    await asyncio.wait_for(cleaned.wait(), 5)
    await turn.aclose()


async def test_a_claim_that_lost_before_it_ran_never_runs():
    turn = Turn()
    old = turn.claim("a")
    turn.claim("a")

    async def work():
        raise AssertionError

    with pytest.raises(SupersededError):
        await turn.run(old, work())


async def test_documents_do_not_disturb_each_other():
    turn = Turn()

    async def answer(value):
        await asyncio.sleep(0)
        return value

    a, b = turn.claim("a"), turn.claim("b")
    assert await asyncio.gather(turn.run(a, answer(1)), turn.run(b, answer(2))) == [1, 2]


async def test_cancelling_the_caller_is_not_superseding():
    turn, hold = Turn(), asyncio.Event()
    task = asyncio.create_task(turn.run(turn.claim("a"), hold.wait()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await turn.aclose()


async def test_an_error_of_the_work_is_its_callers():
    turn = Turn()

    async def fail():
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - its own
        await turn.run(turn.claim("a"), fail())
