"""Kind K: clients without inline completion get a completion menu."""

import pytest

from tests import driver, servers
from tests.e2e import scene as scenes

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]

PARAMS = driver.VSCODE | {
    "clientInfo": {"name": "helix", "version": "25.07.1"},
    "capabilities": {"textDocument": {"completion": {"completionItem": {"snippetSupport": True}}}},
}


async def ask_menu(scene, marked, said, **context):
    scene.says.script = servers.reply(said)
    uri, line, column = scene.put(marked)
    reply = await scene.lsp.menu(uri, line, column, {"triggerKind": 1} | context)
    assert "error" not in reply
    return uri, reply["result"]


def applied(lsp, uri, item):
    """The document after the menu's entry is taken."""
    return lsp.apply(uri, {"range": item["textEdit"]["range"], "insertText": item["textEdit"]["newText"]})


async def test_a_client_without_inline_completion_gets_a_menu(scene):
    # helix-editor/helix#13039
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
        ("if x:‸", "\n    return 1", "return 1"),
        ("x = ‸", "'" + "a" * 300 + "'", "'" + "a" * 79 + " …"),
    ],
)
async def test_the_label_is_one_line_and_the_edit_starts_and_ends_on_the_cursors_line(scene, marked, said, label):
    uri, result = await ask_menu(scene, marked, said)
    (item,) = result["items"]
    assert item["label"] == label
    assert "\n" not in item["filterText"]
    line = marked[: marked.index("‸")].count("\n")
    assert item["textEdit"]["range"]["start"]["line"] == item["textEdit"]["range"]["end"]["line"] == line
    assert applied(scene.lsp, uri, item) == marked.replace("‸", said)


async def test_nothing_to_say_is_an_empty_menu(scene):
    _, result = await ask_menu(scene, "x = ‸", "")
    assert result["items"] == []


@pytest.mark.parametrize(
    ("formats", "documentation"),
    [
        ({"documentationFormat": ["plaintext"]}, "return 1"),
        ({"documentationFormat": ["plaintext", "markdown"]}, {"kind": "markdown", "value": "```python\nreturn 1\n```"}),
        ({}, {"kind": "markdown", "value": "```python\nreturn 1\n```"}),
    ],
)
async def test_the_documentation_has_a_form_that_the_client_shows(tmp_path, formats, documentation):
    params = PARAMS | {"capabilities": {"textDocument": {"completion": {"completionItem": formats}}}}
    async with scenes.running(tmp_path, params=params) as scene:
        _, result = await ask_menu(scene, "ret‸", "urn 1")
        assert result["items"][0]["documentation"] == documentation
