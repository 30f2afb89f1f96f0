"""Kind K: what the client can do, and the rules of the protocol."""

import asyncio

import pytest

from tests import driver
from tests.e2e import scene as scenes

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]


@pytest.mark.parametrize("marked", ["x = ‸", "print(‸)", "def f():\n    ‸\n    return 1\n", "x = foo(‸) + 1", "\t‸"])
async def test_every_inline_item_has_a_range_on_the_cursors_line(scene, marked):
    # neovim/neovim#38721
    shown = await scene.show(marked, "value", invoked=True)
    line = marked[: marked.index("‸")].count("\n")
    assert (shown.range[0][0], shown.range[1][0]) == (line, line)


@pytest.mark.parametrize("inline", [None, {}, {"dynamicRegistration": False}, {"dynamicRegistration": True}])
async def test_inline_completion_is_always_announced(tmp_path, inline):
    # pygls leaves it out when it is registered without options; lsp-mode uses it without saying so
    document = {} if inline is None else {"inlineCompletion": inline}
    params = driver.VSCODE | {"capabilities": {"textDocument": document}}
    async with driver.server(tmp_path, initialize=False) as lsp:
        result = await lsp.initialize(params, scenes.endpoint("http://127.0.0.1:9"))
        assert result["capabilities"]["inlineCompletionProvider"] is not None
        assert ("completionProvider" in result["capabilities"]) == (inline is None)


@pytest.mark.parametrize("dynamic", [False, True])
async def test_nothing_is_registered_dynamically(tmp_path, dynamic):
    # zbirenbaum/copilot-cmp#78
    registration = {"dynamicRegistration": dynamic}
    capabilities = {
        "textDocument": {"inlineCompletion": registration, "synchronization": registration},
        "workspace": {"didChangeConfiguration": registration, "didChangeWatchedFiles": registration, "configuration": False},
    }
    async with scenes.running(tmp_path, params=driver.VSCODE | {"capabilities": capabilities}) as scene:
        await scene.alive()
        assert [request["method"] for request in scene.lsp.requests] == []


@pytest.mark.parametrize(
    ("info", "inside", "text", "range_"),
    [
        # The pop-up has `append` selected for `ap`.
        ({"range": ((0, 2), (0, 4)), "text": "append"}, "x.append", "append(1)", ((0, 2), (0, 4))),
        ({"range": ((0, 4), (0, 4)), "text": "pend"}, "x.append", "pend(1)", ((0, 4), (0, 4))),
        # Nonsense is ignored.
        ({"range": ((9, 0), (9, 0)), "text": "append"}, "x.ap", "(1)", ((0, 4), (0, 4))),
        ({"range": ((0, 2), (0, 4)), "text": "a\nb"}, "x.ap", "(1)", ((0, 4), (0, 4))),
    ],
)
async def test_what_the_pop_up_has_selected_is_extended(scene, info, inside, text, range_):
    start, end = ({"line": line, "character": column} for line, column in info["range"])
    shown = await scene.show("x.ap‸", "(1)", selected={"range": {"start": start, "end": end}, "text": info["text"]})
    assert (shown.text, shown.range) == (text, range_)
    assert shown.halves[0] == inside


async def test_an_item_tells_us_when_it_is_accepted(scene):
    shown = await scene.show("x = ‸", "1")
    command = shown.reply.items_[0]["command"]
    assert await scene.lsp.call("workspace/executeCommand", {"command": command["command"], "arguments": command["arguments"]})
    (outcome,) = await scene.lsp.why()
    assert (outcome["outcome"], outcome["accepted"]) == ("shown", True)


@pytest.mark.parametrize("arguments", [[], [None], ["x"], [{}], [10**30], None, [1.5], [[]]])
async def test_a_command_with_odd_arguments_does_no_harm(scene, arguments):
    for command in ("monkeycode.accepted", "monkeycode.why"):
        params = {"command": command} | ({} if arguments is None else {"arguments": arguments})
        assert "error" not in await scene.lsp.call("workspace/executeCommand", params)
    await scene.alive()


async def test_an_unknown_command_is_an_error_reply(scene):
    reply = await scene.lsp.call("workspace/executeCommand", {"command": "monkeycode.nothing", "arguments": []})
    assert "error" in reply
    assert "Traceback" not in str(reply)
    await scene.alive()


async def test_a_request_with_the_id_0_can_be_cancelled(home):
    options = {"engine": "scripted", "scripted": {"delayMs": 20_000}, "completion": {"deadlineMs": 30_000}}
    async with driver.server(home, options=options) as lsp:
        lsp.open("file:///w/a.py", "x = ")
        asked = lsp.ask("file:///w/a.py", 0, 4, id_=0)
        lsp.cancel(asked)
        assert (await asyncio.wait_for(asked, 10))["error"]["code"] == -32800
