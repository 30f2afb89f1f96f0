"""Kind F with settings that change: what could have been answered differently is asked for anew, and nothing else is."""

import asyncio
import zlib

import pytest

from tests import servers
from tests.e2e import scene as scenes

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]

OPTIONS = {"cache": {"enabled": True, "diskTtlSeconds": 0}}


async def configured(scene, settings):
    """From here on the server works with these, and knows its engine again."""
    scene.lsp.configure(settings)
    await scene.ready()


async def known(scene, name):
    await configured(scene, {})
    uri, line, column = scene.put(f"{name} = ‸")
    scene.says.script = servers.reply("1")
    assert (await scene.ask(uri, line, column)).text == "1"
    scene.says.script = servers.reply("2")
    return uri, line, column


@pytest.mark.parametrize(
    "change",
    [
        {"completion": {"maxTokens": 17}},
        {"completion": {"temperature": 0.5}},
        {"completion": {"multiline": "never"}},
        {"context": {"prefixTokens": 100}},
        {"context": {"suffixTokens": 50}},
        {"template": "starcoder2"},
        {"template": {"prefix": "<p>", "suffix": "<s>", "middle": "<m>"}},
    ],
    ids=str,
)
async def test_a_setting_that_shapes_answers_makes_another_place(scene, change):
    place = await known(scene, f"shaped_{zlib.crc32(str(change).encode())}")
    await configured(scene, change)
    again = await scene.ask(*place)
    assert (again.text, len(again.requests)) == ("2", 1)
    await configured(scene, {})
    back = await scene.ask(*place)
    assert (back.text, back.requests) == ("1", [])


async def test_another_model_at_the_same_address_makes_another_place(scene):
    place = await known(scene, "model")
    await configured(scene, scenes.endpoint(scene.backend.url, "starcoder2-3b"))
    again = await scene.ask(*place)
    assert (again.text, len(again.requests)) == ("2", 1)


@pytest.mark.parametrize(
    "change",
    [{"debounce": {"mode": "fixed", "maxMs": 5}}, {"lookAhead": {"mode": "off"}}, {"logLevel": "error"}, {"remote": {"stallMs": 2_000}}],
    ids=str,
)
async def test_any_other_setting_leaves_what_is_known(scene, change):
    place = await known(scene, f"kept_{zlib.crc32(str(change).encode())}")
    if "remote" in change:
        change = scenes.merged(scenes.endpoint(scene.backend.url), change)
    await configured(scene, change)
    again = await scene.ask(*place)
    assert (again.text, again.requests) == ("1", [])


async def test_without_the_cache_nothing_is_known_and_nothing_is_kept(scene):
    place = await known(scene, "uncached")
    await configured(scene, {"cache": {"enabled": False}})
    for _ in range(2):
        assert len((await scene.ask(*place)).requests) == 1


async def test_where_the_setting_is_zero_what_was_rejected_is_shown_again(scene):
    place = await known(scene, "zero")
    await configured(scene, {"cache": {"showings": 0}})
    shown = await scene.ask(*place)
    number = shown.reply["result"]["items"][0]["command"]["arguments"][0]
    await scene.lsp.call("workspace/executeCommand", {"command": "monkeycode.rejected", "arguments": [number]})
    assert (await scene.ask(*place)).text == shown.text


@pytest.mark.parametrize("change", [{"cache": {"enabled": False}}, {"cache": {"diskTtlSeconds": 0}}], ids=str)
async def test_nothing_comes_to_lie_on_disk_where_that_is_not_wanted(start, tmp_path, change):
    folder = tmp_path / "cache"
    async with start(options=scenes.merged({"cache": {"directory": str(folder)}}, change)) as scene:
        await scene.ready()
        assert (await scene.show("a = ‸", "1")).text == "1"
        await scene.lsp.shutdown()
    assert not folder.exists()


async def test_what_is_known_in_memory_is_known_for_its_time_only(start):
    async with start(options={"cache": {"memoryTtlSeconds": 1, "diskTtlSeconds": 0}}) as scene:
        await scene.ready()
        shown = await scene.show("aged = ‸", "1", uri="file:///w/a.py")
        scene.lsp.close_document(shown.uri)
        async with asyncio.timeout(20):
            while True:
                again = await scene.show("aged = ‸", "2", uri="file:///w/b.py")
                scene.lsp.close_document(again.uri)
                if again.requests:
                    break
                await asyncio.sleep(0.2)
        assert again.text == "2"
