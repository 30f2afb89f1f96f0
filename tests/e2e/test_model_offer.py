"""No model yet: the editor's user is offered one, and told what became of it."""

import asyncio

import pytest

from monkeycode_lsp.engines.local import selftest
from monkeycode_lsp.engines.local.managed import library as managed_library
from tests.driver import UNKNOWN, server
from tests.servers import CompletionServer, reply, unused_port

pytestmark = pytest.mark.skipif(not (managed_library.is_installed() or selftest.is_installed()), reason="no local runtime is installed")


def unreachable(home):
    """Nothing answers where models come from, and nobody else's model is found."""
    dead = f"http://127.0.0.1:{unused_port()}"
    return {
        "HF_ENDPOINT": dead, "PIP_INDEX_URL": dead, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_RETRIES": "0",
        "HOME": str(home), "XDG_CACHE_HOME": str(home), "OLLAMA_MODELS": str(home),
    }  # fmt: skip


async def test_a_model_is_offered_once_and_no_is_an_answer(tmp_path):
    async with server(tmp_path, options={"engine": "local"}, env=unreachable(tmp_path)) as lsp:
        lsp.answers["window/showMessageRequest"] = {"title": "Not now"}
        await lsp.until(lambda: [one for one in lsp.requests if one["method"] == "window/showMessageRequest"])
        assert await lsp.complete("file:///w/a.py", marked="def f():\n    ‸") is None
        (offer,) = [one["params"] for one in lsp.requests if one["method"] == "window/showMessageRequest"]
        assert "Qwen2.5-Coder" in offer["message"]
        assert "MB" in offer["message"]
        assert [action["title"] for action in offer["actions"]] == ["Download", "Not now"]
        assert lsp.shown_messages == []
        why = await lsp.call("workspace/executeCommand", {"command": "monkeycode.why", "arguments": [1]})
        assert "monkeycode model pull" in why["result"][0]["reason"]


async def test_a_download_that_fails_says_why_and_shows_its_progress(tmp_path):
    async with server(tmp_path, options={"engine": "local"}, env=unreachable(tmp_path)) as lsp:
        lsp.answers["window/showMessageRequest"] = {"title": "Download"}
        async with asyncio.timeout(60):
            await lsp.until(lambda: lsp.shown_messages, timeout=60)
        assert [one["method"] for one in lsp.requests].count("window/workDoneProgress/create") == 1
        kinds = [note["params"]["value"]["kind"] for note in lsp.notifications if note["method"] == "$/progress"]
        assert kinds[0] == "begin"
        await lsp.until(
            lambda: [note for note in lsp.notifications if note["method"] == "$/progress"][-1]["params"]["value"]["kind"] == "end"
        )
        assert any("127.0.0.1" in message or "hub" in message for message in lsp.shown_messages), lsp.shown_messages


async def test_an_editor_that_asks_no_questions_is_told_what_to_do(tmp_path):
    async with server(tmp_path, options={"engine": "local"}, env=unreachable(tmp_path), initialize=False) as lsp:
        lsp.answers["window/showMessageRequest"] = UNKNOWN
        await lsp.initialize(options={"engine": "local"})
        await lsp.until(lambda: lsp.shown_messages)
        assert "monkeycode model pull" in lsp.shown_messages[0]


async def test_a_mirror_of_the_settings_is_asked(tmp_path):
    async with CompletionServer(reply("no hub")) as mirror:
        options = {"engine": "local", "local": {"mirror": mirror.url}}
        async with server(tmp_path, options=options, env=unreachable(tmp_path)) as lsp:
            lsp.answers["window/showMessageRequest"] = {"title": "Download"}
            await lsp.until(lambda: lsp.shown_messages, timeout=60)
        assert any("Qwen2.5-Coder" in request.path for request in mirror.others)
