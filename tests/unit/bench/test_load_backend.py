"""The endpoint without a model: what it answers, how many at a time, and what it tells of its clients."""

from __future__ import annotations

import asyncio
import time

import httpx
import pytest

from monkeycode_lsp.bench import backend, tabby
from monkeycode_lsp.bench.backend import Pace
from monkeycode_lsp.bench.backend_process import BackendProcess, mark, running

LONG = Pace(60.0)


@pytest.fixture
async def client():
    async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
        yield client


def body(number=1):
    return {"prompt": f"place_{number} = value(", "stream": True}


async def test_it_streams_its_text_in_events(client):
    async with backend.serve("alpha, beta)") as endpoint:
        said = (await client.post(f"{endpoint.url}/v1/completions", json=body())).text
    assert said.count("data: {") == 7
    assert said.endswith("data: [DONE]\n\n")


async def test_it_answers_a_peer_in_the_peers_way(client):
    async with backend.serve("alpha)") as endpoint:
        asked = {"language": "python", "segments": {"prefix": "a = f(", "suffix": ""}}
        said = (await client.post(f"{endpoint.url}/v1/completions", json=asked)).json()
        health = (await client.get(f"{endpoint.url}/v1/health")).json()
        event = await client.post(f"{endpoint.url}/v1/events?select_kind=line", json={"type": "view"})
        setting = (await client.get(f"{endpoint.url}/v1beta/server_setting")).json()
        again = await client.post(f"{endpoint.url}/v1/completions", json=body())
    assert said["choices"] == [{"index": 0, "text": "alpha)"}]
    assert health["model"]
    assert event.status_code == 200
    assert setting == {"disable_client_side_telemetry": True}
    assert again.text.startswith("data: ")


async def test_no_more_answers_are_under_way_than_it_has_slots(client):
    async with running("x", Pace(0.05, slots=2)) as endpoint:
        began = time.monotonic()
        answers = await asyncio.gather(*(client.post(f"{endpoint.url}/v1/completions", json=body()) for _ in range(8)))
        took = time.monotonic() - began
    assert {answer.status_code for answer in answers} == {200}
    assert took >= 4 * 0.05


async def test_it_tells_who_came_and_who_left_without_an_answer(client):
    async with running("x", LONG) as endpoint:
        asking = asyncio.create_task(client.post(f"{endpoint.url}/v1/completions", json=body(17)))
        assert await endpoint.until(lambda: 17 in endpoint.seen, 20)
        assert not endpoint.closed
        before = time.monotonic()
        asking.cancel()
        assert await endpoint.until(lambda: 17 in endpoint.closed, 20)
    assert before <= endpoint.closed[17] <= time.monotonic()


async def test_who_leaves_gives_the_slot_to_the_next(client):
    async with running("x", Pace(60.0, slots=1)) as endpoint:
        first, second = [asyncio.create_task(client.post(f"{endpoint.url}/v1/completions", json=body(n))) for n in (1, 2)]
        assert await endpoint.until(lambda: len(endpoint.seen) == 2, 20)
        await endpoint.pace(Pace(0.01, slots=1))
        (first if min(endpoint.seen, key=endpoint.seen.__getitem__) == 1 else second).cancel()
        done, _ = await asyncio.wait({first, second}, timeout=20)
        assert len(done) == 2
        assert len(endpoint.closed) == 1


async def test_the_pace_can_be_changed_while_it_runs(client):
    async with running("x", LONG) as endpoint:
        await endpoint.pace(Pace())
        assert (await client.post(f"{endpoint.url}/v1/completions", json=body())).is_success


async def test_one_that_was_killed_comes_back_at_its_address(client):
    async with running("x", Pace()) as endpoint:
        await client.post(f"{endpoint.url}/v1/completions", json=body())
        await endpoint.kill()
        with pytest.raises(httpx.TransportError):
            await client.post(f"{endpoint.url}/v1/completions", json=body())
        again = await BackendProcess.start("x", Pace(), port=endpoint.port)
        assert (await client.post(f"{endpoint.url}/v1/completions", json=body(5))).is_success
        assert await again.until(lambda: 5 in again.seen, 20)
        await again.aclose()


async def test_waiting_for_what_does_not_happen_ends():
    async with running("x", Pace()) as endpoint:
        assert not await endpoint.until(lambda: False, 0.01)


def test_the_newest_place_in_a_request_is_the_one_that_is_asked_for():
    assert mark(b"place_12 = value(\nplace_9 = value_9(\nplace_101x") == 101
    assert mark(b"none") == -1


def test_a_peers_segments_are_not_taken_for_text_that_says_so():
    assert tabby.is_asked(b'{"language":"python","segments":{"prefix":""}}')
    assert not tabby.is_asked(b'{"prompt":"x = {\\"segments\\":{}}"}')
