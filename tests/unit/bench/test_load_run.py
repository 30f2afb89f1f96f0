"""The load benchmark with real servers, as small as it can be."""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing

import pytest

from monkeycode_lsp import config
from monkeycode_lsp.bench import load
from monkeycode_lsp.bench.backend import Pace
from monkeycode_lsp.bench.backend_process import running
from monkeycode_lsp.bench.load_report import STRAIGHT, THROUGH
from monkeycode_lsp.bench.load_stage import Plan
from monkeycode_lsp.bench.load_ways import Straight
from monkeycode_lsp.errors import EngineUnavailableError
from tests import servers

SMALL = Plan(servers=2, rate=8, seconds=1.0, cancels=4, endurance=20)


def straight(server):
    return Straight(config.Endpoint(url=server.url, api="openai", model="qwen2.5-coder"), {}, greeting_s=0.2)


def figures(part):
    return {figure.name: figure.value for figure in part.figures}


async def test_two_servers_for_a_second():
    said = []
    report = await load.run(config.Endpoint(), SMALL, only=("arrivals", "cancels", "endurance"), say=said.append)
    assert re.fullmatch(r"This takes about \d+0 seconds\.", said[0])
    assert said[1:] == ["starting servers", "arrivals (1 of 3)", "cancels (2 of 3)", "endurance (3 of 3)"]
    arrivals, cancels, endurance = report.parts
    assert arrivals.systems[THROUGH].n == arrivals.systems[STRAIGHT].n > 0
    assert min(way.p50 for way in arrivals.systems.values()) >= 250
    assert figures(arrivals)[f"asks that failed, {THROUGH}"] == 0
    assert figures(arrivals)[f"asks without text, {THROUGH}"] == figures(arrivals)[f"asks without text, {STRAIGHT}"] == 0
    assert figures(cancels)["never closed"] == 0
    assert cancels.systems[THROUGH].n == 4 - figures(cancels)["stopped before they were sent"]
    assert endurance.left_out or endurance.systems[THROUGH].n == 10


async def test_an_endpoint_of_the_users_is_asked_by_both_ways_and_never_killed(monkeypatch):
    monkeypatch.setenv("A_KEY", "secret")
    async with running("alpha)", Pace()) as mine:
        endpoint = config.Endpoint(url=f"{mine.url}/v1", api="openai", api_key_env="A_KEY")
        report = await load.run(endpoint, SMALL, only=("arrivals", "cancels", "failover"))
    arrivals, cancels, failover = report.parts
    assert report.endpoint == f"{mine.url} (openai)"
    assert "secret" not in repr(report)
    assert figures(arrivals)[f"asks without text, {STRAIGHT}"] == 0
    assert cancels.left_out
    assert failover.left_out


async def test_an_endpoint_that_is_slower_than_the_deadline_is_left_alone_soon_and_told():
    asked = 0

    async def slow(exchange):
        nonlocal asked
        asked += 1
        if asked > 1:  # the first one is our look whether it completes at all
            await exchange.request.closed.wait()
        await servers.reply("alpha)")(exchange)

    said = []
    async with servers.CompletionServer(slow) as mine, asyncio.timeout(90):
        endpoint = config.Endpoint(url=mine.url, api="openai", model="qwen2.5-coder")
        plan = Plan(servers=1, rate=1, seconds=1.0)
        report = await load.run(endpoint, plan, say=said.append)
    arrivals, saturation, *_ = report.parts
    assert "slower than `completion.deadlineMs`" in arrivals.about
    assert figures(arrivals)[f"asks without text, {THROUGH}"] == figures(arrivals)[f"asks without text, {STRAIGHT}"] == 1.0
    assert figures(arrivals)[f"asks that failed, {STRAIGHT}"] == 0
    assert max(way.p99 for way in arrivals.systems.values()) < 15_000
    assert "Stopped at 1 under way: 0 answers" in saturation.about
    assert not [name for name in figures(saturation) if "2 under way" in name]
    assert said[2:] == ["arrivals (1 of 2)", "saturation (2 of 2)"]  # those that are left out are not waited for


async def test_an_endpoint_that_answers_nothing_at_all_is_told_apart_from_one_that_refuses():
    async def silent(exchange):
        await exchange.request.closed.wait()

    async with servers.CompletionServer(silent) as mine, aclosing(straight(mine)) as way:
        with pytest.raises(EngineUnavailableError, match=r"did not complete a line within 0\.2 seconds"):
            await way.greet()


async def test_an_endpoint_that_refuses_us_ends_the_run_before_it_begins():
    async with servers.CompletionServer(servers.status(401)) as mine:
        with pytest.raises(EngineUnavailableError) as caught:
            await load.run(config.Endpoint(url=mine.url, api="openai", model="m"), SMALL)
    assert caught.value.message == f"The server at {mine.url} does not complete code for us."
