"""Checks of a server that is really there: `MONKEYCODE_TEST_ENDPOINT=http://127.0.0.1:8000 pytest tests/e2e/test_real_endpoint.py`.

The variable may also hold the settings of an endpoint as JSON: `{"url": "https://…", "apiKeyEnv": "MY_KEY", "model": "…"}`.
Nothing is assumed of what the model says, so that a model with random weights will do.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import urllib.error
import urllib.request
from contextlib import aclosing

import msgspec
import pytest

from monkeycode_lsp import config, prompt
from monkeycode_lsp.domain import Priority, Sampling, Window
from monkeycode_lsp.engines import choose
from monkeycode_lsp.errors import ContextOverflowError, EngineRefusedError
from tests import driver

GIVEN = os.environ.get("MONKEYCODE_TEST_ENDPOINT", "").strip()
ENDPOINT = json.loads(GIVEN) if GIVEN.startswith("{") else {"url": GIVEN}

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not GIVEN, reason="MONKEYCODE_TEST_ENDPOINT names no server"),
]

BEFORE, AFTER = "def add(a, b):\n    return ", "\n\n\nprint(add(1, 2))\n"
PATIENCE_S = 60
"""For an answer of a slow machine."""


class Asking:
    """The engine of these settings, its model, and what the user was told."""

    def __init__(self, **other):
        self.told = []
        tree = {
            "engine": "remote",
            "remote": {"endpoints": [ENDPOINT | other], "timeoutMs": PATIENCE_S * 1000, "stallMs": PATIENCE_S * 1000},
        }
        self.engine = choose.engine(msgspec.convert(tree, config.Config), lambda error: self.told.append(str(error)))

    async def __aenter__(self):
        self.model = await self.engine.ready()
        return self

    async def __aexit__(self, *_):
        await self.engine.aclose()

    def prompt(self, before=BEFORE, **how):
        window = Window(before, AFTER, language="python", path="add.py")
        return msgspec.structs.replace(prompt.render(window, (), self.model.family, max_tokens=16, session="one document"), **how)

    async def chunks(self, asked):
        async with asyncio.timeout(PATIENCE_S), aclosing(self.engine.stream(asked)) as stream:
            return [chunk async for chunk in stream]


def metrics():
    """vLLM's own figures, without its labels; None: the server has none of this kind."""
    root = ENDPOINT["url"].rstrip("/").removesuffix("/v1")
    try:
        with urllib.request.urlopen(f"{root}/metrics", timeout=PATIENCE_S) as reply:  # noqa: S310 - the address that the user named
            lines = reply.read().decode().splitlines()
    except urllib.error.URLError:
        return None
    found = [line.rpartition(" ") for line in lines if line.startswith("vllm:")]
    return {name: float(value) for name, _, value in found} or None


def total(figures, name):
    return sum(value for labelled, value in figures.items() if labelled.startswith(name + "{"))


async def idle():
    """Wait until the server works on nothing."""
    async with asyncio.timeout(5):
        while True:
            running = total(await asyncio.to_thread(metrics), "vllm:num_requests_running")
            if not running:
                return
            await asyncio.sleep(0.02)


async def test_an_answer_comes_and_says_how_it_ended():
    async with Asking() as asking:
        chunks = await asking.chunks(asking.prompt())
    assert [chunk.finish is not None for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert sum(chunk.n_tokens for chunk in chunks) <= 17


async def test_what_is_known_is_asked_again_in_the_same_form_and_nothing_more_is_told():
    async with Asking() as asking:
        await asking.chunks(asking.prompt())
        told = list(asking.told)
        fingerprint = asking.model.fingerprint
        for _ in range(3):
            await asking.chunks(asking.prompt())
        assert (await asking.engine.ready()).fingerprint == fingerprint
        assert asking.told == told


@pytest.mark.parametrize("priority", Priority)
async def test_what_is_not_urgent_is_answered_too(priority):
    async with Asking() as asking:
        assert (await asking.chunks(asking.prompt(priority=priority)))[-1].finish
        assert asking.told == []


async def test_no_way_to_draw_is_refused():
    sampling = Sampling(temperature=0.7, top_p=0.9, min_p=0.05, repeat_penalty=1.1)
    async with Asking() as asking:
        assert (await asking.chunks(asking.prompt(sampling=sampling)))[-1].finish


async def test_ten_stop_strings_are_not_refused_and_each_of_them_stops():
    async with Asking() as asking:
        text = "".join(chunk.text for chunk in await asking.chunks(asking.prompt(max_tokens=32)))
        letter = next((char for char in text[1:] if char.isalpha()), "e")
        stops = (*asking.prompt().stop, "<|a|>", "<|b|>", "<|c|>", "<|d|>", "<|e|>", letter)
        stopped = "".join(chunk.text for chunk in await asking.chunks(asking.prompt(max_tokens=32, stop=stops)))
    assert letter not in stopped
    assert text.startswith(stopped)


async def test_the_beginning_of_a_prompt_is_not_read_twice_where_the_server_says_so():
    before = f"# {secrets.token_hex(16)}\n" + "".join(f"value_{n} = compute({n})\n" for n in range(60)) + BEFORE
    async with Asking() as asking:
        await asking.chunks(asking.prompt(before))
        usage = (await asking.chunks(asking.prompt(before)))[-1].usage
    if usage is None or usage.reused is None:
        pytest.skip("the server does not say what it took from its cache")
    assert usage.reused > 0


async def test_a_prompt_that_is_far_too_long_is_told_as_such():
    async with Asking() as asking:
        n_tokens = asking.model.context_tokens
        if n_tokens is None or n_tokens > 40_000:
            pytest.skip("the server does not say how long its window is, or it is too long for a test")
        with pytest.raises(ContextOverflowError) as caught:
            await asking.chunks(asking.prompt("one two three four\n" * n_tokens))
    assert "one two" not in str(caught.value)


async def test_a_model_that_is_not_there_is_named():
    async with Asking(model="no-such-model") as asking:
        (refused,) = await asyncio.gather(asking.chunks(asking.prompt()), return_exceptions=True)
    if not isinstance(refused, BaseException):
        pytest.skip("the server does not look at the model's name")
    assert isinstance(refused, EngineRefusedError)
    assert "'no-such-model'" in str(refused)
    assert "`model`" in refused.remedy


async def test_after_many_that_were_stopped_the_server_is_idle_and_answers():
    n_asks, n_tokens = 24, 400
    before = await asyncio.to_thread(metrics)
    async with Asking() as asking:
        for number in range(n_asks):
            async with (
                asyncio.timeout(PATIENCE_S),
                aclosing(asking.engine.stream(asking.prompt(f"{number} = ", max_tokens=n_tokens))) as stream,
            ):
                first = asyncio.ensure_future(anext(stream))
                await asyncio.wait({first}, timeout=None if number % 2 else 0.003 * number)
                first.cancel()
                await asyncio.wait({first})
        if before is not None:
            await idle()
            n_made = total(await asyncio.to_thread(metrics), "vllm:generation_tokens_total") - total(before, "vllm:generation_tokens_total")
            assert n_made < n_asks * n_tokens / 4
        await asking.chunks(asking.prompt())


async def test_the_language_server_gets_its_answer_from_it(home):
    options = {"engine": "remote", "remote": {"endpoints": [ENDPOINT]}, "completion": {"deadlineMs": PATIENCE_S * 1000}}
    async with driver.server(home, options=options) as lsp:
        uri = "file:///w/add.py"
        lsp.open(uri, BEFORE + AFTER)
        await lsp.complete(uri, *lsp.position(uri, len(BEFORE)), timeout=PATIENCE_S)
        (outcome,) = await lsp.why(1)
    assert outcome["outcome"] in {"shown", "empty"}, outcome
