"""Many servers, one engine process: what is left of their asks when it is killed, and what of it when they are."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

pytest.importorskip("llama_cpp", reason="needs the native engine")

from monkeycode_lsp.engines.local.host import control, registry, rendezvous
from tests import driver

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.model,
    pytest.mark.native,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc"),
]

N_SERVERS = int(os.environ.get("MONKEYCODE_TEST_SERVERS", "4"))
N_KILLS = int(os.environ.get("MONKEYCODE_TEST_KILLS", "8"))
MARKED = "def is_even(n):\n    return ‸\n"


@pytest.fixture(autouse=True)
def own_home(model_path, home, monkeypatch):
    monkeypatch.setenv("MONKEYCODE_HOME", str(home))


@pytest.fixture
async def windows(home, model_path):
    """Opens servers; at the end nothing of the engine process is left, however they went."""
    async with AsyncExitStack() as stack:

        async def open_window(**more):
            local = {"runtime": "native", "model": str(model_path), "contextTokens": 512, "lingerSeconds": 0} | more
            options = {
                "engine": "local",
                "local": local,
                "cache": {"enabled": False},
                "completion": {"maxTokens": 12, "deadlineMs": 10_000},
            }
            return await stack.enter_async_context(driver.server(home, options=options))

        yield open_window
    async with asyncio.timeout(20):
        while list(rendezvous.folder().iterdir()):  # noqa: ASYNC110 - files cannot be awaited
            await asyncio.sleep(0.05)


async def shown(lsp, number=0):
    uri = f"file:///w/{number}.py"
    lsp.open(uri, MARKED.replace("‸", ""))
    reply = await asyncio.wait_for(lsp.ask(uri, *lsp.position(uri, MARKED.index("‸"))), 60)
    assert "error" not in reply, reply
    return [item["insertText"] for item in reply.items_]


async def shown_again(lsp, number):
    """Ask until something is shown: a process that crashed often is started again after a pause."""
    async with asyncio.timeout(60):
        while not await shown(lsp, number):
            number += 1
            await asyncio.sleep(0.2)


def zombies(parents):
    """Processes that one of these has not buried."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
            found += [path] if state == "Z" and int(parent) in parents else []
    return found


async def gone(pid, within_s):
    async with asyncio.timeout(within_s):
        while control.is_running(pid):  # noqa: ASYNC110 - a process that is not our child cannot be awaited
            await asyncio.sleep(0.02)


async def test_all_windows_share_one_process(windows):
    servers = await asyncio.gather(*(windows() for _ in range(4)))
    assert all(await asyncio.gather(*(shown(lsp) for lsp in servers)))
    [(_, note)] = registry.all_notes()
    [seen] = await control.look()
    assert seen.status.clients == 4
    servers[0].process.kill()
    assert await shown(servers[1], 1)
    assert registry.all_notes()[0][1].pid == note.pid


async def test_the_process_goes_with_the_last_window_that_is_killed(windows):
    lsp = await windows()
    assert await shown(lsp)
    [(_, note)] = registry.all_notes()
    lsp.process.kill()
    await gone(note.pid, within_s=3)


async def test_a_process_that_is_stopped_costs_its_asks_and_no_more(windows):
    lsp = await windows()
    assert await shown(lsp)
    [(_, note)] = registry.all_notes()
    os.kill(note.pid, signal.SIGSTOP)
    assert await shown(lsp, 1) == []
    await shown_again(lsp, 2)
    assert registry.all_notes()[0][1].pid != note.pid


@pytest.mark.timeout(120 + 10 * N_KILLS)
async def test_every_ask_gets_one_reply_however_often_the_process_is_killed(windows):
    servers = await asyncio.gather(*(windows() for _ in range(N_SERVERS)))
    await asyncio.gather(*(shown(lsp) for lsp in servers))
    dice = random.Random(7)  # noqa: S311 - the same each time
    is_over, has_answered = asyncio.Event(), asyncio.Event()
    asked = [0] * N_SERVERS
    answered = [0] * N_SERVERS

    async def type_on(number, lsp):
        while not is_over.is_set():
            asked[number] += 1
            if await shown(lsp, asked[number]):
                answered[number] += 1
                has_answered.set()
            await asyncio.sleep(0.2)

    typing = [asyncio.create_task(type_on(number, lsp)) for number, lsp in enumerate(servers)]
    n_kills = 0
    while n_kills < N_KILLS:
        # Sometimes it is still loading, sometimes everybody is at it.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(has_answered.wait(), 10 * dice.random())
        await asyncio.sleep(dice.random())
        for _, note in registry.all_notes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(note.pid, signal.SIGKILL)
                n_kills += 1
        has_answered.clear()
    is_over.set()
    await asyncio.gather(*typing)
    assert sum(answered)
    for lsp in servers:
        await shown_again(lsp, 1_000_000)
        ids = [reply["id"] for reply in lsp.all_replies]
        assert len(ids) == len(set(ids))
    assert zombies({lsp.process.pid for lsp in servers}) == []
    print(f"{n_kills} kills, {sum(asked)} asks, {sum(answered)} with an answer")
