"""Where settings come from: defaults < user file < workspace file < environment < editor.  All of it through the real server."""

import asyncio
import json
import os
from contextlib import asynccontextmanager

import pytest

from tests import driver, servers
from tests.e2e import scene as scenes

pytestmark = pytest.mark.e2e

ALL = ["user", "workspace", "environment", "options", "current"]
"""The weakest first."""


@asynccontextmanager
async def editor(tmp_path, *, user="", workspace="", env=None, options=None, pulled=None, section=False):
    """An editor with settings in all these places; the address comes with the options."""
    home, folder = tmp_path / "home", tmp_path / "workspace"
    for path, text in ((home / "config" / "monkeycode.toml", user), (folder / ".monkeycode.toml", workspace)):
        path.parent.mkdir(parents=True, exist_ok=True)
        if text:
            path.write_text(text, encoding="utf-8")
    pulls = {"workspace": {"configuration": pulled is not None}}
    params = driver.VSCODE | {
        "rootUri": folder.as_uri(),
        "workspaceFolders": [{"uri": folder.as_uri(), "name": "workspace"}],
        "capabilities": driver.VSCODE["capabilities"] | pulls,
    }
    async with servers.CompletionServer() as backend, driver.server(home, initialize=False, env=env) as lsp:
        lsp.answers["workspace/configuration"] = [pulled]
        tree = scenes.merged(scenes.endpoint(backend.url), {"debounce": {"mode": "off"}, "cache": {"enabled": False}}, options or {})
        await lsp.initialize(params, {"monkeycode": tree} if section else tree)
        yield scenes.Scene(lsp, backend, None)


async def body(scene):
    """What the backend is asked now."""
    uri, line, column = scene.put("x = ‸")
    await scene.ask(uri, line, column, invoked=True)
    return scene.backend.requests[-1].json


@pytest.mark.parametrize("source", ALL)
async def test_every_source_is_used_and_the_stronger_wins(tmp_path, source):
    present = ALL[: ALL.index(source) + 1]
    number = {name: 10 + n for n, name in enumerate(ALL)}
    async with editor(
        tmp_path,
        user=f"[completion]\nmaxTokens = {number['user']}\ntemperature = 0.5\n",
        workspace=f"[completion]\nmaxTokens = {number['workspace']}\n" if "workspace" in present else "",
        env={"MONKEYCODE_COMPLETION_MAX_TOKENS": str(number["environment"])} if "environment" in present else {},
        options={"completion": {"maxTokens": number["options"]}} if "options" in present else {},
        pulled={"completion": {"maxTokens": number["current"]}} if "current" in present else None,
    ) as scene:
        asked = await body(scene)
        assert (asked["max_tokens"], asked["temperature"]) == (number[source], 0.5)
        assert scene.lsp.shown_messages == []


async def test_the_options_may_stand_below_our_name(tmp_path):
    async with editor(tmp_path, options={"completion": {"maxTokens": 11}}, section=True) as scene:
        assert (await body(scene))["max_tokens"] == 11


async def test_the_editor_is_asked_for_our_section_and_asked_again_when_it_says_that_something_changed(tmp_path):
    async with editor(tmp_path, pulled={"completion": {"maxTokens": 11, "temperature": None}}) as scene:
        assert (await body(scene))["max_tokens"] == 11
        scene.lsp.answers["workspace/configuration"] = [{"completion": {"maxTokens": 12}}]
        scene.lsp.notify("workspace/didChangeConfiguration", {"settings": None})
        await scene.lsp.until(lambda: len(scene.lsp.requests) == 2)
        assert (await body(scene))["max_tokens"] == 12
        asked = [request["params"]["items"] for request in scene.lsp.requests]
        assert [[item["section"] for item in items] for items in asked] == [["monkeycode"]] * 2


async def test_an_editor_that_answers_oddly_is_served_with_the_other_settings(tmp_path):
    async with editor(tmp_path, options={"completion": {"maxTokens": 11}}, pulled={}) as scene:
        for n, answer in enumerate([None, [], [None], ["x"], {"a": 1}, 7, [[]], [{"completion": 3}]], 2):
            scene.lsp.answers["workspace/configuration"] = answer
            scene.lsp.notify("workspace/didChangeConfiguration", {"settings": None})
            await scene.lsp.until(lambda n=n: len(scene.lsp.requests) == n)
            assert (await body(scene))["max_tokens"] == 11, answer


async def test_an_ask_before_the_editor_has_told_its_settings_waits_for_them(tmp_path):
    """The answer to `workspace/configuration` comes a moment later than the first ask."""
    async with editor(tmp_path, pulled={"completion": {"maxTokens": 11}}) as scene:
        first = await scene.ask(*scene.put("x = ‸"))
        assert first.text == "ok"
        assert first.requests[0].json["max_tokens"] == 11


async def test_pushed_settings_replace_those_pushed_before(tmp_path):
    async with editor(tmp_path, options={"completion": {"maxTokens": 11}}) as scene:
        for pushed, expected in (
            ({"monkeycode": {"completion": {"maxTokens": 12}}}, 12),
            ({"completion": {"maxTokens": 13}}, 13),
            ({"monkeycode": {}}, 11),
            ({"monkeycode": {"completion": {"maxTokens": 14}}}, 14),
            ({"monkeycode": None}, 11),
        ):
            scene.lsp.notify("workspace/didChangeConfiguration", {"settings": pushed})
            assert (await body(scene))["max_tokens"] == expected, pushed
        assert scene.lsp.shown_messages == []


async def test_settings_that_are_not_ours_are_left_alone(tmp_path):
    foreign = [{"pylsp": {"plugins": {}}, "editor": {"tabSize": 4}}, {}, None, "x", 3, [], {"python": None}, {"monkeycode": 3}]
    async with editor(tmp_path, options={"completion": {"maxTokens": 11}}) as scene:
        for pushed in foreign:
            scene.lsp.notify("workspace/didChangeConfiguration", {"settings": pushed})
            assert (await body(scene))["max_tokens"] == 11, pushed
        assert scene.lsp.shown_messages == []


async def test_a_workspace_may_not_say_where_text_goes(tmp_path):
    evil = """
        logLevel = "debug"
        template = "starcoder2"
        engine = "off"
        [remote]
        endpoints = [{ url = "http://127.0.0.1:1" }]
        [cache]
        sharedUrl = "redis://127.0.0.1:1"
        [privacy]
        redactSecrets = false
        [completion]
        maxTokens = 11
    """.replace("        ", "")
    async with editor(tmp_path, workspace=evil) as scene:
        asked = await body(scene)
        assert asked["max_tokens"] == 11  # what it may set is used
        assert asked["prompt"].startswith(scenes.PREFIX)
        for name in ("remote", "cache", "privacy", "engine", "template", "logLevel"):
            assert len([message for message in scene.lsp.shown_messages if f" {name}:" in message]) == 1, name


BAD = [
    ({"completion": {"maxTokens": "many", "temperature": 0.5}}, "completion.maxTokens"),
    ({"completion": {"maxTokens": 0, "temperature": 0.5}}, "completion.maxTokens"),
    ({"completion": {"maxToken": 5, "temperature": 0.5}}, "maxTokens"),
    ({"completion": {"temperature": 0.5}, "debounce": 3}, "debounce"),
    ({"completion": {"temperature": 0.5}, "template": {"prefix": 1}}, "template"),
    ({"completion": {"temperature": 0.5, "disabledGlobs": "*.md"}}, "completion.disabledGlobs"),
    ({"completion": {"temperature": 0.5}, "nonsense": {"a": [1]}}, "nonsense"),
    ({"completion": {"temperature": 0.5}, "logLevel": "loud"}, "logLevel"),
]


async def test_a_bad_value_is_named_once_and_the_others_are_used(tmp_path):
    async with editor(tmp_path, options=BAD[0][0]) as scene:
        assert (await body(scene))["temperature"] == 0.5
        assert len(scene.lsp.shown_messages) == 1
        for n, (tree, named) in enumerate(BAD, 1):
            for _ in range(3):
                scene.lsp.notify("workspace/didChangeConfiguration", {"settings": {"monkeycode": tree}})
                assert (await body(scene))["temperature"] == 0.5
            assert len(scene.lsp.shown_messages) == n
            assert named in scene.lsp.shown_messages[-1]


async def test_bad_values_of_files_and_the_environment_are_named_too(tmp_path):
    async with editor(
        tmp_path,
        user="[completion]\nmaxTokens = -1\ntemperature = 0.5\n",
        workspace="[debounce]\nmode = 'sometimes'\n",
        env={"MONKEYCODE_CONTEXT_PREFIX_TOKENS": "lots", "MONKEYCODE_COMPLETION_MAX_TOKENS": "17"},
    ) as scene:
        asked = await body(scene)
        assert (asked["temperature"], asked["max_tokens"]) == (0.5, 17)
        messages = scene.lsp.shown_messages
        assert len(messages) == 3
        for name in ("completion.maxTokens", "debounce.mode", "context.prefixTokens"):
            assert sum(name in message for message in messages) == 1


@pytest.mark.parametrize("text", ["this is no toml", "[completion\n", "completion = 3", "\ufeff[completion]\nmaxTokens = 5", "x = 1\n" * 3])
async def test_a_file_that_cannot_be_read_is_named_and_left_out(tmp_path, text):
    async with editor(tmp_path, user=text, workspace=text) as scene:
        assert (await body(scene))["max_tokens"] in {96, 5}
        assert len(scene.lsp.shown_messages) in {1, 2}


async def test_lists_and_groups_in_the_environment_are_json(tmp_path):
    env = {"MONKEYCODE_REMOTE_ENDPOINTS": json.dumps([{"url": "http://127.0.0.1:1"}]), "MONKEYCODE_COMPLETION_DISABLED_GLOBS": '["*.md"]'}
    async with editor(tmp_path, env=env) as scene:
        assert (await body(scene))["max_tokens"] == 96  # the editor's own address wins
        shown = await scene.ask(*scene.put("x = ‸", uri="file:///w/a.md"))
        assert shown.requests == []


DEEP = "x = " + "[" * 100_000


@pytest.mark.parametrize(
    "make", [lambda path: path.mkdir(), os.mkfifo, lambda path: path.write_text(DEEP), lambda path: path.write_text("#" * 2**21)]
)
async def test_what_is_no_file_of_settings_is_named_and_left_out(tmp_path, make):
    folder = tmp_path / "workspace"
    folder.mkdir()
    make(folder / ".monkeycode.toml")
    async with editor(tmp_path) as scene:
        assert (await body(scene))["max_tokens"] == 96
        (message,) = scene.lsp.shown_messages
        assert ".monkeycode.toml cannot be used" in message


async def test_an_environment_that_is_no_text_does_no_harm(tmp_path):
    env = {"MONKEYCODE_ENGINE": "\udcff", "MONKEYCODE_TEMPLATE": "\udcff", "MONKEYCODE_COMPLETION_DISABLED_GLOBS": "[" * 50_000}
    async with editor(tmp_path, env=env) as scene:
        scene.lsp.configure({"template": "auto"})
        assert (await body(scene))["max_tokens"] == 96
        assert any("engine: it is not text" in message for message in scene.lsp.shown_messages)


async def test_a_model_file_whose_name_is_no_text_is_named(home):
    async with driver.server(home, env={"MONKEYCODE_LOCAL_MODEL": "/no\udcff.gguf"}) as lsp:
        assert await lsp.complete("file:///w/a.py", marked="x = ‸") is None
        assert any("/no?.gguf" in message for message in lsp.shown_messages)
        assert await lsp.shutdown() == 0


async def test_a_workspace_whose_address_cannot_be_read_does_no_harm(home):
    params = driver.VSCODE | {"workspaceFolders": [{"uri": "file://[::", "name": "w"}]}
    async with driver.server(home, params=params, options={"engine": "scripted", "scripted": {"text": "ok"}}) as lsp:
        assert await lsp.complete("file:///w/a.py", marked="x = ‸") == "ok"
        assert await lsp.complete("file://[::/a.py", marked="x = ‸") is None


@pytest.mark.parametrize("pulled", [None, {}], ids=["pushes", "is asked"])
async def test_files_are_read_again_when_the_editor_says_that_settings_changed(tmp_path, pulled):
    async with editor(tmp_path, user="[completion]\nmaxTokens = 11\n", pulled=pulled) as scene:
        assert (await body(scene))["max_tokens"] == 11
        (tmp_path / "home" / "config" / "monkeycode.toml").write_text("[completion]\nmaxTokens = 12\n", encoding="utf-8")
        scene.lsp.notify("workspace/didChangeConfiguration", {"settings": None})
        await scene.lsp.settled()
        async with asyncio.timeout(10):
            while (await body(scene))["max_tokens"] != 12:
                pass
