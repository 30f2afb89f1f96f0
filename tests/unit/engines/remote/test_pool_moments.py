"""A pool over time: who answers a moment later than another, and a second request long after the first."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.engines.remote import asking, members
from tests.unit.engines.remote.members import FakeServer
from tests.unit.virtual import on_virtual_time


@pytest.mark.parametrize(("later_s", "name"), [(0.2, "a"), (0.45, "a"), (2.0, "b")])
@on_virtual_time
async def test_one_that_stands_first_is_waited_for_a_moment(later_s: float, name: str) -> None:
    a, b = FakeServer("a", model="qwen2.5-coder-7b"), FakeServer("b", model="starcoder2-3b", family="starcoder2")
    asked = members.engine(a, b)
    a.knows.clear()
    asyncio.get_running_loop().call_later(later_s, a.knows.set)
    model = await asked.ready()
    assert model.name == {"a": a, "b": b}[name].model.name
    assert await asking.answer(asked, asking.fim(model=model.fingerprint)) == f"{name}!"
    await asked.aclose()


async def test_a_second_request_that_was_used_up_is_allowed_again_after_some_more_asks() -> None:
    a, b = FakeServer("a"), FakeServer("b")
    asked = members.engine(a, b)
    await asked.ready()
    async with asyncio.timeout(20):
        while any(member.model is None for member in asked.members):  # noqa: ASYNC110 - it is told in tasks of the pool
            await asyncio.sleep(0)
        for member in asked.members:
            for _ in range(40):
                member.latencies.add(0.01)
        prompt = asking.fim(session="s")
        for held, other in ((a, b), (b, a)):
            held.hold()
            assert await asking.answer(asked, prompt) == f"{other.name}!", "its second request"
            held.go()
            for _ in range(20):
                assert await asking.answer(asked, prompt) == f"{other.name}!"
            while not all(member.is_good for member in asked.members):  # noqa: ASYNC110 - looks of the pool tell nobody
                await asyncio.sleep(0.01)
    await asked.aclose()
