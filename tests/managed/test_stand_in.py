"""An endpoint that goes and comes back, and the real model in its place meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from monkeycode_lsp.engines.local.host import control, registry
from monkeycode_lsp.engines.local.managed import library as managed_library
from tests import driver
from tests.servers import CompletionServer, reply

pytestmark = [
    pytest.mark.model,
    pytest.mark.managed,
    pytest.mark.skipif(not managed_library.has_package(), reason="xllamacpp is not installed"),
]

LOST_S, BACK_S = 90, 15


def texts(answer):
    return [item["insertText"] for item in answer.items_]


async def until(lsp, wanted, within_s):
    """Ask at a new place again and again, as one does who goes on typing."""
    async with asyncio.timeout(within_s):
        n = 0
        while True:
            n += 1
            uri = f"file:///w/{wanted.__name__}_{n}.py"
            lsp.open(uri, f"def is_even_{n}(n):\n    return \n", "python")
            answer = await lsp.ask(uri, 1, 11, invoked=True)
            assert "error" not in answer
            if wanted(texts(answer)):
                return
            await asyncio.sleep(0.2)


def from_endpoint(shown):
    return shown == ["from_the_endpoint"]


def from_model(shown):
    return bool(shown) and "% 2" in shown[0]


async def test_the_local_model_stands_in_while_the_endpoint_is_gone(home, model_path, monkeypatch):
    monkeypatch.setenv("MONKEYCODE_HOME", str(home))  # whose engine processes are looked for below
    local = {"model": str(model_path), "runtime": "managed", "contextTokens": 1024, "slots": 1, "lingerSeconds": 0}
    async with CompletionServer(reply("from_the_endpoint")) as first:
        port = first.port
        remote = {"endpoints": [{"url": first.url, "model": "qwen2.5-coder"}]}
        async with driver.server(home, options={"local": local, "remote": remote}) as lsp:
            try:
                await until(lsp, from_endpoint, 10)
                await first.__aexit__()
                await until(lsp, from_model, LOST_S)
                async with CompletionServer(reply("from_the_endpoint"), port=port):
                    await until(lsp, from_endpoint, BACK_S)
                assert any("Until that is mended" in words for words in lsp.shown_messages), lsp.shown_messages
            finally:
                await asyncio.gather(*(control.stop(place, note) for place, note in registry.all_notes()))
