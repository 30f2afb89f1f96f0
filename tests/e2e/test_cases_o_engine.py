"""Kind O through the whole server: the local engine and its model file."""

from __future__ import annotations

import asyncio
import shutil

import pytest

from monkeycode_lsp.engines.local import selftest
from monkeycode_lsp.engines.local.host import rendezvous
from monkeycode_lsp.engines.local.managed import library as managed_library
from tests.driver import server

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.model,
    pytest.mark.skipif(not (managed_library.is_installed() or selftest.is_installed()), reason="no local runtime is installed"),
]
MARKED = "def is_even(n):\n    return ‸\n"


@pytest.fixture(autouse=True)
async def own_home(model_path, home, monkeypatch):
    monkeypatch.setenv("MONKEYCODE_HOME", str(home))
    yield
    async with asyncio.timeout(20):
        while list(rendezvous.folder().iterdir()):  # noqa: ASYNC110 - files cannot be awaited
            await asyncio.sleep(0.05)


def settings(model):
    local = {"model": str(model), "contextTokens": 512, "lingerSeconds": 0}
    return {"engine": "local", "local": local, "completion": {"deadlineMs": 30_000, "maxTokens": 8}}


async def text(lsp, number):
    uri = f"file:///w/{number}.py"
    lsp.open(uri, MARKED.replace("‸", ""))
    reply = await asyncio.wait_for(lsp.ask(uri, *lsp.position(uri, MARKED.index("‸"))), 60)
    assert "error" not in reply, reply
    return reply.items_[0]["insertText"] if reply.items_ else None


@pytest.mark.parametrize("is_folder", [False, True], ids=["no file", "a folder"])
async def test_a_model_that_is_not_there_is_named_with_its_setting_and_works_once_it_is(tmp_path, model_path, is_folder):
    model = tmp_path / "models of mine" / "model.gguf"
    model.parent.mkdir()
    if is_folder:
        model.mkdir()
    async with server(tmp_path, options=settings(model)) as lsp:
        await lsp.until(lambda: lsp.shown_messages)
        assert str(model) in lsp.shown_messages[0]
        assert "local.model" in lsp.shown_messages[0]
        assert await text(lsp, 1) is None
        if is_folder:
            model.rmdir()
        shutil.copy(model_path, model)
        assert await text(lsp, 2)
        assert len(lsp.shown_messages) == 1


async def test_two_windows_ask_at_once_and_both_are_answered(tmp_path, model_path):
    async with server(tmp_path, options=settings(model_path)) as one, server(tmp_path, options=settings(model_path)) as other:
        assert all(await asyncio.gather(text(one, 1), text(other, 2)))


async def test_one_letter_more_reads_a_small_part_of_a_long_document_again(tmp_path, model_path):
    options = settings(model_path)
    options["local"]["contextTokens"] = 2048
    options["cache"] = {"enabled": False}
    lines = "".join(f"value_{n} = compute({n}, {n * 7})\n" for n in range(60))
    async with server(tmp_path, options=options) as lsp:
        uri = "file:///w/long.py"
        lsp.open(uri, lines + "total = val")
        await asyncio.wait_for(lsp.ask(uri, 60, 11, invoked=True), 90)
        for letter in "qxy":  # not what was suggested; after the first ask the window is as large as the machine is fast
            lsp.change(uri, (60, 11), (60, 11), letter)
            await asyncio.wait_for(lsp.ask(uri, 60, 12, invoked=True), 90)
        why = await lsp.call("workspace/executeCommand", {"command": "monkeycode.why", "arguments": [1]})
        asked = why["result"][0]
        assert asked["readTokens"] < 0.1 * (asked["readTokens"] + asked["reusedTokens"]), asked
