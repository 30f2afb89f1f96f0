"""Kind K: what the client can do, and the rules of the protocol."""

import pytest

from tests import driver
from tests.e2e import scene as scenes

pytestmark = pytest.mark.e2e

MENU_ONLY = driver.VSCODE | {
    "clientInfo": {"name": "helix", "version": "25.07.1"},
    "capabilities": {"textDocument": {"completion": {"completionItem": {"snippetSupport": True}}}},
}


async def ask_menu(scene, marked, said, **context):
    scene.says.script = scenes.servers.reply(said)
    uri, line, column = scene.put(marked)
    reply = await scene.lsp.menu(uri, line, column, {"triggerKind": 1} | context)
    assert "error" not in reply
    return uri, reply["result"]


def applied(lsp, uri, item):
    """The document after the menu's entry is taken."""
    return lsp.apply(uri, {"range": item["textEdit"]["range"], "insertText": item["textEdit"]["newText"]})


async def test_a_client_without_inline_completion_gets_a_menu(tmp_path):
    # helix-editor/helix#13039
    async with scenes.running(tmp_path, params=MENU_ONLY) as scene:
        uri, result = await ask_menu(scene, "ret‸", "urn 1\n")
        assert result["isIncomplete"] is True
        (item,) = result["items"]
        assert item["label"] == "return 1"
        assert applied(scene.lsp, uri, item) == "return 1"
        assert item["filterText"].startswith("ret")


@pytest.mark.parametrize(
    ("marked", "said", "label"),
    [
        ("def f(a):\n    ‸", "if a:\n        return 1\n    return 2", "if a: …"),
        ("x = ‸", "1", "1"),
        ("x = f(‸)", "'a', b", "'a', b"),
        ("имя = и‸", "мя2", "имя2"),
        ("if x:‸", "\n    return 1", "return 1 …"),
        ("x = ‸", "'" + "a" * 300 + "'", "'" + "a" * 79 + " …"),
    ],
)
async def test_the_label_is_one_line_and_the_edit_starts_and_ends_on_the_cursors_line(tmp_path, marked, said, label):
    async with scenes.running(tmp_path, params=MENU_ONLY) as scene:
        uri, result = await ask_menu(scene, marked, said)
        (item,) = result["items"]
        assert item["label"] == label
        assert "\n" not in item["filterText"]
        line = marked[: marked.index("‸")].count("\n")
        assert item["textEdit"]["range"]["start"]["line"] == item["textEdit"]["range"]["end"]["line"] == line
        assert applied(scene.lsp, uri, item) == marked.replace("‸", said)


async def test_nothing_to_say_is_an_empty_menu(tmp_path):
    async with scenes.running(tmp_path, params=MENU_ONLY) as scene:
        _, result = await ask_menu(scene, "x = ‸", "")
        assert result["items"] == []


@pytest.mark.parametrize("marked", ["x = ‸", "print(‸)", "def f():\n    ‸\n    return 1\n", "x = foo(‸) + 1", "\t‸"])
async def test_every_inline_item_has_a_range_on_the_cursors_line(tmp_path, marked):
    # neovim/neovim#38721
    async with scenes.running(tmp_path) as scene:
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
async def test_what_the_pop_up_has_selected_is_extended(tmp_path, info, inside, text, range_):
    async with scenes.running(tmp_path) as scene:
        start, end = ({"line": line, "character": column} for line, column in info["range"])
        shown = await scene.show("x.ap‸", "(1)", selected={"range": {"start": start, "end": end}, "text": info["text"]})
        assert (shown.text, shown.range) == (text, range_)
        assert shown.halves[0] == inside


async def test_an_item_tells_us_when_it_is_accepted(tmp_path):
    async with scenes.running(tmp_path) as scene:
        shown = await scene.show("x = ‸", "1")
        command = shown.reply.items_[0]["command"]
        assert await scene.lsp.call("workspace/executeCommand", {"command": command["command"], "arguments": command["arguments"]})
        (outcome,) = await scene.lsp.why()
        assert (outcome["outcome"], outcome["accepted"]) == ("shown", True)


@pytest.mark.parametrize("arguments", [[], [None], ["x"], [{}], [10**30], None, [1.5], [[]]])
async def test_a_command_with_odd_arguments_does_no_harm(tmp_path, arguments):
    async with scenes.running(tmp_path) as scene:
        for command in ("monkeycode.accepted", "monkeycode.why"):
            params = {"command": command} | ({} if arguments is None else {"arguments": arguments})
            assert "error" not in await scene.lsp.call("workspace/executeCommand", params)
        await scene.alive()


async def test_an_unknown_command_is_an_error_reply(tmp_path):
    async with scenes.running(tmp_path) as scene:
        reply = await scene.lsp.call("workspace/executeCommand", {"command": "monkeycode.nothing", "arguments": []})
        assert "error" in reply
        assert "Traceback" not in str(reply)
        await scene.alive()
