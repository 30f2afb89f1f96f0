"""Kind B: line ends, indentation, white space."""

import re

import pytest

from tests import driver
from tests.e2e import scene as scenes

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]

FUNCTION = "def f(a):\n    ‸\n    return b\n"


def ends(text):
    return set(re.findall(r"\r\n|\r|\n", text))


@pytest.mark.parametrize("eol", ["\n", "\r\n", "\r"], ids=ascii)
async def test_the_prompt_has_lf_only_and_the_document_keeps_its_own_line_end(scene, eol):
    # TabbyML/tabby#3279
    shown = await scene.show(FUNCTION.replace("\n", eol), "b = a\n    b += 1")
    assert shown.halves == ("def f(a):\n    ", "\n    return b\n")
    assert ends(shown.result) == {eol}
    assert shown.result == f"def f(a):{eol}    b = a{eol}    b += 1{eol}    return b{eol}"


@pytest.mark.parametrize("said", ["b = a\n    b += 1", "b = a\r\n    b += 1", "b = a\r    b += 1"], ids=ascii)
@pytest.mark.parametrize("eol", ["\n", "\r\n"], ids=ascii)
async def test_the_line_ends_of_the_answer_do_not_matter(scene, said, eol):
    shown = await scene.show(FUNCTION.replace("\n", eol), said)
    assert shown.text == f"b = a{eol}    b += 1"


async def test_in_a_document_of_both_kinds_the_prevailing_one_is_used(scene):
    shown = await scene.show("import os\r\nimport re\r\ndef f(a):\n    ‸\r\n    return b\r\n", "b = a\n    b += 1")
    assert shown.text == "b = a\r\n    b += 1"
    assert "\r" not in "".join(shown.halves)


async def test_vim_and_its_kin_get_lf_only(tmp_path):
    params = driver.VSCODE | {"clientInfo": {"name": "Neovim", "version": "0.12.4"}}
    async with scenes.running(tmp_path, params=params) as scene:
        shown = await scene.show(FUNCTION.replace("\n", "\r\n"), "b = a\n    b += 1")
        assert shown.text == "b = a\n    b += 1"


@pytest.mark.parametrize(
    ("marked", "said", "text"),
    [
        ("for x in xs:\r\n    ‸\r\n\r\nprint(1)\r\n", "n += x\r\n\r\n\r\n", "n += x"),
        ("for x in xs:\n    ‸\n\nprint(1)\n", "n += x\n\n\n", "n += x"),
        ("for x in xs:\r\n    ‸", "n += x\r\n\r\n", "n += x"),
        ("x = ‸\r\n", "1\r\n", "1"),
        ("x = ‸\n", "1   \n", "1"),
    ],
)
async def test_no_blank_lines_are_appended(scene, marked, said, text):
    # continuedev/continue#3591, continuedev/continue#3567
    assert (await scene.show(marked, said)).text == text


@pytest.mark.parametrize(
    ("marked", "said", "result"),
    [
        ("if a:\n   ‸", "foo(1,\n       2)", "if a:\n   foo(1,\n       2)"),
        ("if a:\n  ‸", "b = [\n    1,\n  ]", "if a:\n  b = [\n    1,\n  ]"),
        ("def f():\n  if a:\n    b()\n  ‸", "c = [\n    1,\n  ]", "def f():\n  if a:\n    b()\n  c = [\n    1,\n  ]"),
        ("if a:\n\t‸", "b = 1\n\tc = 2", "if a:\n\tb = 1\n\tc = 2"),
        ("def f():\n    ‸", "if a:\n        b()\n    c()", "def f():\n    if a:\n        b()\n    c()"),
    ],
)
async def test_good_indentation_is_left_alone(scene, marked, said, result):
    # TabbyML/tabby#911, TabbyML/tabby#3361
    assert (await scene.show(marked, said)).result == result


@pytest.mark.parametrize(
    ("marked", "said", "result"),
    [
        ("x = ‸", " 1", "x = 1"),
        ("x =‸", " 1", "x = 1"),
        ("x = ‸", "1", "x = 1"),
        ("return ‸", " a + b", "return a + b"),
        ("return‸", " a + b", "return a + b"),
        ("x = ‸\r\ny = 2\r\n", " 1", "x = 1\r\ny = 2\r\n"),
    ],
)
async def test_no_space_is_doubled(scene, marked, said, result):
    # TabbyML/tabby#3261, ggml-org/llama.cpp#7050, continuedev/continue#1448
    assert (await scene.show(marked, said)).result == result
