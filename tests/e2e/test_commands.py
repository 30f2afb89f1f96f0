"""What an editor can tell the server beside asking: accepted, rejected, forget, why."""

from __future__ import annotations

import pytest

from tests import servers

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]

OPTIONS = {"cache": {"enabled": True, "diskTtlSeconds": 0}}


async def command(scene, name, *arguments):
    reply = await scene.lsp.call("workspace/executeCommand", {"command": f"monkeycode.{name}", "arguments": list(arguments)})
    assert "error" not in reply, reply
    return reply["result"]


async def newest(scene):
    (outcome,) = await scene.lsp.why()
    return outcome


async def test_what_is_rejected_is_not_shown_there_again_unless_asked_for_by_key(scene):
    shown = await scene.show("rejected = ‸", "1")
    assert shown.text == "1"
    assert await command(scene, "rejected", (await newest(scene))["id"]) is None
    again = await scene.ask(shown.uri, 0, 11)
    assert (again.text, again.requests) == (None, [])
    outcome = await newest(scene)
    assert (outcome["outcome"], "cache.showings" in outcome["reason"]) == ("empty", True)
    assert (await scene.ask(shown.uri, 0, 11, invoked=True)).text == "1"
    elsewhere = await scene.show("another = ‸", "1")
    assert elsewhere.text == "1"


async def test_what_is_forgotten_is_asked_anew_and_shown_again(scene):
    shown = await scene.show("forgotten = ‸", "1")
    await command(scene, "rejected", (await newest(scene))["id"])
    assert (await scene.ask(shown.uri, 0, 12)).text is None
    assert await command(scene, "forget") is None
    scene.says.script = servers.reply("2")
    again = await scene.ask(shown.uri, 0, 12)
    assert (again.text, len(again.requests)) == ("2", 1)
    scene.says.script = servers.reply("1")
    await command(scene, "forget")
    assert (await scene.ask(shown.uri, 0, 12)).text == "1"


async def test_what_was_accepted_is_told(scene):
    await scene.show("accepted = ‸", "1")
    outcome = await newest(scene)
    assert not outcome["accepted"]
    assert await command(scene, "accepted", outcome["id"]) is None
    assert (await newest(scene))["accepted"]


@pytest.mark.parametrize("name", ["accepted", "rejected", "forget"])
@pytest.mark.parametrize(
    "arguments",
    [(), (None,), ("1",), (1.5,), ([],), ({"id": 1},), (-1,), (0,), (10**30,), (True,), (1, 2, 3)],
    ids=repr,
)
async def test_arguments_that_make_no_sense_change_nothing(scene, name, arguments):
    n_messages = len(scene.lsp.shown_messages)
    shown = await scene.show(f"bad_{name}_{abs(hash(repr(arguments)))} = ‸", "1")
    assert await command(scene, name, *arguments) is None
    again = await scene.ask(shown.uri, 0, len(scene.lsp.texts[shown.uri]))
    assert again.text == "1"
    assert len(scene.lsp.shown_messages) == n_messages


@pytest.mark.parametrize("arguments", [(None,), ("x",), (-5,), (0,), (10**30,), (True,), ([],)], ids=repr)
async def test_why_takes_any_number(scene, arguments):
    await scene.show("why = ‸", "1")
    told = await command(scene, "why", *arguments)
    assert isinstance(told, list)
    assert len(told) <= 1_000


async def test_arguments_left_out_altogether_are_none(scene):
    for name in ("accepted", "rejected", "forget", "why"):
        reply = await scene.lsp.call("workspace/executeCommand", {"command": f"monkeycode.{name}"})
        assert "error" not in reply, reply
    await scene.alive()
