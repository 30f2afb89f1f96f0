"""Kind F: what is remembered must be right."""

import pytest

from tests import driver, servers

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]

OPTIONS = {"cache": {"enabled": True}}


async def test_an_empty_answer_is_not_remembered(scene):
    # chaitin/MonkeyCode#30, milanglacier/minuet-ai.nvim#33
    shown = await scene.show("a = ‸", "")
    assert shown.text is None
    scene.says.script = servers.reply("x")
    assert (await scene.ask(shown.uri, 0, 4)).text == "x"


@pytest.mark.parametrize(
    "failure",
    [
        servers.status(500, b"no"),
        servers.status(503, b"loading"),
        servers.stream(b'data: {"choices":[{"text":"y"}]}\n\n'),
        servers.reply("", finish="length"),
        servers.reply("   \n\n"),
    ],
    ids=["500", "503", "cut off", "overflow", "white space"],
)
async def test_a_failure_is_not_remembered(scene, failure):
    shown = await scene.show(f"b{id(failure)} = ‸", failure)
    assert shown.text is None
    scene.says.script = servers.reply("x")
    again, _ = await scene.answered(shown.uri, 0, len(scene.lsp.texts[shown.uri]), invoked=True)  # some failures are followed by a rest
    assert again.text == "x"
    scene.lsp.close_document(shown.uri)


async def test_typing_along_needs_no_call_and_leaving_does(scene):
    # ggml-org/llama.vim#22, sourcegraph PR 51046
    shown = await scene.show("he‸", "llo()")
    assert shown.text == "llo()"
    scene.lsp.change(shown.uri, (0, 2), (0, 2), "l")
    along = await scene.ask(shown.uri, 0, 3)
    assert (along.text, along.requests) == ("lo()", [])
    scene.lsp.change(shown.uri, (0, 2), (0, 3), "")
    back = await scene.ask(shown.uri, 0, 2)
    assert (back.text, back.requests) == ("llo()", [])
    scene.lsp.change(shown.uri, (0, 2), (0, 2), "x")
    scene.says.script = servers.reply("agon()")
    left = await scene.ask(shown.uri, 0, 3)
    assert (left.text, len(left.requests)) == ("agon()", 1)


async def test_typing_all_of_it_asks_anew(scene):
    shown = await scene.show("t = ‸", "1")
    scene.lsp.change(shown.uri, (0, 4), (0, 4), "1")
    scene.says.script = servers.reply(" + 2")
    done = await scene.ask(shown.uri, 0, 5)
    assert (done.text, len(done.requests)) == (" + 2", 1)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("if user.active:\n    ‸", "if not user.active:\n    ‸"),  # zilliztech/GPTCache#694, vllm-project/semantic-router#2691
        ("x = a\ny = ‸", "x = b\ny = ‸"),
        ("y = ‸\nreturn a\n", "y = ‸\nreturn b\n"),
        ("if a2:\n    ‸", "if a2:\n    b\n    ‸"),
        ("if a3:\n    b\n    ‸", "if a3:\n    b\n‸"),
        ("A = 'x'\nB = ‸", "A = 'X'\nB = ‸"),
    ],
)
async def test_a_similar_place_is_another_place(scene, one, other):
    assert (await scene.show(one, "enable(user)")).text == "enable(user)"
    shown = await scene.show(other, "disable(user)")
    assert (shown.text, len(shown.requests)) == ("disable(user)", 1)


@pytest.mark.parametrize(
    ("one", "other", "then"),
    [
        ("def f(a):\n    return g(‸)\n", "def f( a ):\n\n    return g(‸)\n", "a, b"),
        ("x = 1  # one\ny = 2\nz = ‸", "x = 1\ny = 2\nz = ‸", "x + y"),
    ],
)
async def test_blank_lines_white_space_and_far_comments_make_no_other_place(scene, one, other, then):
    assert (await scene.show(one, then, uri="file:///w/one.py")).text == then
    shown = await scene.show(other, "something_else", uri="file:///w/other.py")
    assert (shown.text, shown.requests) == (then, [])


async def test_another_depth_is_the_same_place_indented_anew(scene):
    assert (await scene.show("if deep:\n    ‸", "b()\n    c()", uri="file:///w/one.py")).text == "b()\n    c()"
    shown = await scene.show("if deep:\n        ‸", "something_else", uri="file:///w/other.py")
    assert (shown.text, shown.requests) == ("b()\n        c()", [])


async def test_another_language_is_another_place(scene):
    assert (await scene.show("u = ‸", "1")).text == "1"
    assert len((await scene.show("u = ‸", "2", language="ruby")).requests) == 1


async def test_the_answer_of_one_project_is_not_served_in_another(start):
    # mofa-org/mofa#1611
    folders = [{"uri": f"file:///{name}", "name": name} for name in ("one/project", "other/project")]
    async with start(params=driver.VSCODE | {"workspaceFolders": folders}) as scene:
        first = await scene.show("KEY = ‸", '"a-secret"', uri="file:///one/project/main.py")
        second = await scene.show("KEY = ‸", '"mine"', uri="file:///other/project/main.py")
        third = await scene.show("KEY = ‸", '"nobody\'s"', uri="file:///elsewhere/main.py")
        assert [shown.text for shown in (first, second, third)] == ['"a-secret"', '"mine"', '"nobody\'s"']


async def test_a_second_server_on_the_same_folders_does_not_serve_it_either(start, tmp_path):
    async with start(params=driver.VSCODE) as scene:
        await scene.show("KEY = ‸", '"a-secret"', uri="file:///w/main.py")
    other = driver.VSCODE | {"workspaceFolders": [{"uri": "file:///v", "name": "w"}], "rootUri": "file:///v"}
    async with start(params=other) as scene:
        assert (await scene.show("KEY = ‸", '"mine"', uri="file:///v/main.py")).text == '"mine"'
