"""Waiting for a model to be loaded."""

from __future__ import annotations

import asyncio

import pytest

from monkeycode_lsp.engines.remote.loading import Loading
from monkeycode_lsp.errors import EngineUnavailableError


@pytest.fixture
async def loading():
    made = Loading()
    yield made
    await made.aclose()


async def test_there_is_one_load_at_a_time_and_another_when_that_is_done(loading):
    begun, done, n_loads = asyncio.Event(), asyncio.Event(), 0

    async def load():
        nonlocal n_loads
        n_loads += 1
        begun.set()
        await done.wait()

    loading.begin(load)
    loading.begin(load)
    await begun.wait()
    assert (n_loads, loading.is_going_on) == (1, True)
    done.set()
    await asyncio.wait({loading._task})
    assert not loading.is_going_on
    loading.begin(load)
    await asyncio.wait({loading._task})
    assert n_loads == 2


async def test_a_load_that_fails_is_over_and_says_nothing(loading):
    async def load():
        raise EngineUnavailableError("no")

    loading.begin(load)
    await asyncio.wait({loading._task})
    assert not loading.is_going_on
    assert loading._task.exception() is None


async def test_whoever_waits_is_stopped_with_it():
    loading, stopped = Loading(), asyncio.Event()

    async def load():
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    loading.begin(load)
    await asyncio.sleep(0)
    await loading.aclose()
    assert stopped.is_set()
    await Loading().aclose()
