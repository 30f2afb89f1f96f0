"""Kind R: settings change while the server runs."""

import asyncio

import pytest

from tests import servers
from tests.e2e import scene as scenes

pytestmark = pytest.mark.e2e


async def test_another_address_is_used_at_once_and_the_old_request_dropped(start):
    # continuedev/continue#1737
    async with start(servers.hold) as scene, servers.CompletionServer(servers.reply("new")) as other:
        uri, line, column = scene.put("x = ‸")
        old = scene.lsp.ask(uri, line, column)
        request = await asyncio.wait_for(scene.backend.request(0), 10)
        scene.lsp.configure(scenes.endpoint(other.url))
        assert (await scene.lsp.ask(uri, line, column)).items_[0]["insertText"] == "new"
        assert (await old)["result"] is None
        await asyncio.wait_for(request.closed.wait(), 2)
        assert (len(scene.backend.requests), len(other.requests)) == (1, 1)
        scene.says.script = servers.reply("old")
        scene.lsp.configure(scenes.endpoint(scene.backend.url))
        await scene.ready()
        assert (await scene.lsp.ask(uri, line, column)).items_[0]["insertText"] == "old"  # what is remembered is not mixed
        scene.lsp.configure(scenes.endpoint(other.url))
        await scene.ready()
        assert (await scene.lsp.ask(uri, line, column)).items_[0]["insertText"] == "new"


async def test_the_request_in_flight_is_answered_when_the_address_changes(start):
    async with start(servers.hold) as scene, servers.CompletionServer(servers.reply("new")) as other:
        uri, line, column = scene.put("x = ‸")
        old = scene.lsp.ask(uri, line, column)
        request = await asyncio.wait_for(scene.backend.request(0), 10)
        scene.lsp.configure(scenes.endpoint(other.url))
        await asyncio.wait_for(request.closed.wait(), 2)
        assert not (await asyncio.wait_for(old, 5)).items_


async def test_what_was_answered_under_other_settings_is_not_served(start):
    async with start() as scene:
        changes = [
            {"completion": {"maxTokens": 17}},
            {"completion": {"temperature": 0.5}},
            {"context": {"prefixTokens": 100}},
            {"template": "starcoder2"},
            scenes.endpoint(scene.backend.url, "starcoder2-3b"),
        ]
        for n, change in enumerate(changes):
            scene.lsp.configure({})
            shown = await scene.show(f"x{n} = ‸", "1")
            scene.lsp.configure(change)
            scene.says.script = servers.reply("2")
            again = await scene.ask(shown.uri, 0, 5)
            assert (again.text, len(again.requests)) == ("2", 1), change


async def test_unchanged_settings_change_nothing(start):
    async with start() as scene:
        shown = await scene.show("x = ‸", "1")
        scene.lsp.configure({"completion": {"maxTokens": 96}})
        assert (await scene.ask(shown.uri, 0, 4)).requests == []


async def test_a_setting_in_use_reaches_the_backend(start):
    async with start() as scene:
        scene.lsp.configure({"completion": {"maxTokens": 17, "temperature": 0.25}})
        (request,) = (await scene.show("x = ‸", "1")).requests
        assert (request.json["max_tokens"], request.json["temperature"]) == (17, 0.25)


MARKDOWN, PYTHON = ("file:///w/docs/a.md", "markdown"), ("file:///w/a.py", "python")
OFF = [
    ({"completion": {"disabledGlobs": ["**/*.md"]}}, MARKDOWN),
    ({"completion": {"disabledGlobs": ["*.md"]}}, MARKDOWN),
    ({"completion": {"disabledGlobs": ["docs/"]}}, MARKDOWN),
    ({"completion": {"disabledGlobs": ["/docs/**"]}}, MARKDOWN),
    ({"completion": {"disabledLanguages": ["markdown"]}}, ("untitled:Untitled-1", "markdown")),
    ({"enabled": False}, PYTHON),
    ({"engine": "off"}, PYTHON),
]


async def test_it_can_be_switched_off_and_on_while_it_runs(start):
    # continuedev/continue#4053, continuedev/continue#1718
    async with start(options={"cache": {"enabled": False}}) as scene:
        for off, (uri, language) in OFF:
            assert len((await scene.show("x = ‸", uri=uri, language=language)).requests) == 1
            scene.lsp.configure(off)
            for invoked in (False, True):
                shown = await scene.ask(uri, 0, 4, invoked=invoked)
                assert (shown.text, shown.requests) == (None, []), off
            other = await scene.show("x = ‸", uri="file:///w/src/b.py")
            assert len(other.requests) == (0 if {"enabled", "engine"} & off.keys() else 1), off
            scene.lsp.configure({})  # the setting is removed
            assert len((await scene.ask(uri, 0, 4)).requests) == 1, off
        assert scene.lsp.shown_messages == []


async def test_a_hundred_changes_in_a_row_leave_the_last_one(start):
    async with start() as scene, servers.CompletionServer(servers.reply("other")) as other:
        uri, line, column = scene.put("x = ‸")
        asked = []
        for n in range(100):
            scene.lsp.configure(scenes.endpoint((scene.backend, other)[n % 2].url))
            asked.append(scene.lsp.ask(uri, line, column))
        replies = await asyncio.wait_for(asyncio.gather(*asked), 30)
        assert replies[-1].items_[0]["insertText"] == "other"
        assert all("error" not in reply for reply in replies)
