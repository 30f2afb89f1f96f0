"""The endpoint of a replay in real time."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from monkeycode_lsp import prompt as prompts
from monkeycode_lsp.bench.replay import endpoint
from monkeycode_lsp.bench.replay.observed import Typed
from monkeycode_lsp.bench.replay.oracle import Oracle, OracleEngine
from monkeycode_lsp.bench.replay.watched import WatchedEngine
from monkeycode_lsp.domain import Chunk, Finish
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.errors import StreamBrokenError

TYPED = [Typed(0.0, "x = ", "\n", "first"), Typed(1.0, "x = f", "\n", "irst")]


class Says:
    """An engine that says these pieces; at an exception it raises, at an event it waits."""

    def __init__(self, *pieces):
        self.pieces = pieces
        self.prompts = []
        self.closed = asyncio.Event()

    async def ready(self):
        return Model(name="m", family=prompts.by_name("starcoder2"), fingerprint="f")

    async def stream(self, prompt):
        self.prompts.append(prompt)
        try:
            for piece in self.pieces:
                if isinstance(piece, Exception):
                    raise piece
                if isinstance(piece, asyncio.Event):
                    await piece.wait()
                else:
                    yield Chunk(piece, finish=Finish.STOP if piece is self.pieces[-1] else None)
        finally:
            self.closed.set()

    async def aclose(self):
        pass


def body(prefix="x = ", suffix="\n"):
    return {"prompt": f"<|repo_name|>r<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>", "stream": True}


async def ask(url, asked=None):
    async with httpx.AsyncClient() as client:
        answer = await client.post(f"{url}/v1/completions", json=asked or body())
        events = [line.removeprefix("data: ") for line in answer.text.splitlines() if line]
        return answer.status_code, events


async def test_the_text_around_the_cursor_reaches_the_engine_and_its_text_comes_back():
    engine = Says("al", "pha")
    async with endpoint.serve(engine) as url:
        status, events = await ask(url)
    assert status == 200
    assert events[-1] == "[DONE]"
    choices = [json.loads(event)["choices"][0] for event in events[:-1]]
    assert [(choice["text"], choice["finish_reason"]) for choice in choices] == [("al", None), ("pha", "stop")]
    assert [(prompt.prefix, prompt.suffix) for prompt in engine.prompts] == [("x = ", "\n")]


async def test_one_connection_serves_many_and_the_models_can_be_listed():
    async with endpoint.serve(Says("a")) as url, httpx.AsyncClient() as client:
        assert (await client.get(f"{url}/v1/models")).json()["data"] == [{"id": endpoint.MODEL}]
        for _ in range(3):
            assert "[DONE]" in (await client.post(f"{url}/v1/completions", json=body())).text


async def test_a_client_that_goes_ends_the_engines_stream():
    engine = Says("a", asyncio.Event(), "b")
    async with endpoint.serve(engine) as url, httpx.AsyncClient() as client:
        async with client.stream("POST", f"{url}/v1/completions", json=body()) as answer:
            async for _ in answer.aiter_lines():
                break
        await asyncio.wait_for(engine.closed.wait(), 10)


async def test_an_engine_that_breaks_off_breaks_the_answer_off():
    async with endpoint.serve(Says("a", StreamBrokenError("broken"), "b")) as url:
        with pytest.raises(httpx.RemoteProtocolError):
            await ask(url)


@pytest.mark.parametrize("asked", [{"prompt": "no markers"}, {"prompt": 1}, {"other": "x"}])
async def test_what_is_no_prompt_is_refused(asked):
    async with endpoint.serve(Says("a")) as url:
        assert (await ask(url, asked))[0] == 400


async def test_the_oracle_behind_it_knows_of_an_abort():
    oracle = Oracle(TYPED, q=1, seed=0)
    engine = OracleEngine(oracle, latency_s=60)
    async with endpoint.serve(engine) as url:
        with pytest.raises(httpx.ReadTimeout):
            async with httpx.AsyncClient(timeout=0.5) as client:
                await client.post(f"{url}/v1/completions", json=body())
        async with asyncio.timeout(10):
            while not engine.sent[0].aborted:  # noqa: ASYNC110 - the other end of a socket
                await asyncio.sleep(0.01)
    assert engine.sent[0].ended is not None


# The user's own engine


@pytest.mark.parametrize(("said", "right"), [("first", True), ("first_of(all)", True), ("fi", True), ("last", False), ("", False)])
async def test_an_engines_answer_is_right_where_it_goes_along_with_the_author(said, right):
    engine = Says(said)
    watched = WatchedEngine(engine, Oracle(TYPED, q=0, seed=0), TYPED, language="python")
    async with endpoint.serve(watched) as url:
        await ask(url)
    (sent,) = watched.sent
    assert (sent.key, sent.answer, sent.right, sent.aborted) == (0, said, right, False)


async def test_an_engine_is_asked_in_its_own_models_words():
    engine = Says("a")
    watched = WatchedEngine(engine, Oracle(TYPED, q=0, seed=0), TYPED, language="python")
    async with endpoint.serve(watched) as url:
        await ask(url)
    (prompt,) = engine.prompts
    assert "<fim_prefix>" in [segment.text for segment in prompt.segments]
    assert (prompt.prefix, prompt.suffix) == ("x = ", "\n")


async def test_an_answer_that_is_given_up_is_aborted():
    engine = Says("a", asyncio.Event(), "b")
    watched = WatchedEngine(engine, Oracle(TYPED, q=0, seed=0), TYPED, language="python")
    async with endpoint.serve(watched) as url, httpx.AsyncClient() as client:
        async with client.stream("POST", f"{url}/v1/completions", json=body()) as answer:
            async for _ in answer.aiter_lines():
                break
        await asyncio.wait_for(engine.closed.wait(), 10)
    assert (watched.sent[0].aborted, watched.sent[0].answer) == (True, "a")
