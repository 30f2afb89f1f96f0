"""The load benchmark with real servers, as small as it can be."""

from __future__ import annotations

import pytest

from monkeycode_lsp import config
from monkeycode_lsp.bench import load
from monkeycode_lsp.bench.backend import Pace
from monkeycode_lsp.bench.backend_process import running
from monkeycode_lsp.bench.load_report import STRAIGHT, THROUGH
from monkeycode_lsp.bench.load_stage import Plan
from monkeycode_lsp.errors import EngineUnavailableError
from tests import servers

SMALL = Plan(servers=2, rate=8, seconds=1.0, cancels=4, endurance=20)


def figures(part):
    return {figure.name: figure.value for figure in part.figures}


async def test_two_servers_for_a_second():
    said = []
    report = await load.run(config.Endpoint(), SMALL, only=("arrivals", "cancels", "endurance"), say=said.append)
    assert said == ["starting servers", "arrivals", "cancels", "endurance"]
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


async def test_an_endpoint_that_refuses_us_ends_the_run_before_it_begins():
    async with servers.CompletionServer(servers.status(401)) as mine:
        with pytest.raises(EngineUnavailableError) as caught:
            await load.run(config.Endpoint(url=mine.url, api="openai", model="m"), SMALL)
    assert caught.value.message == f"The server at {mine.url} does not complete code for us."
