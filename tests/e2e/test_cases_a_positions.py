"""Kind A: positions and encodings."""

import pytest

from tests import driver
from tests.e2e import scene as scenes

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]

LINES = [
    "label = 'size (μm)'",
    "x = '😋😋'",
    "naïve = 'é'",
    "a\u0301e\u0301 = 1",
    "測試 = '漢字'",
    "\ttab = '\u200d👩\u200d👩'",
    "x = '\u2028\x0c\x85'",
]


@pytest.mark.parametrize("line", LINES, ids=ascii)
async def test_every_column_of_a_line_has_the_text_left_of_it_as_prefix(scene, line):
    # SilasMarvin/lsp-ai#50
    for column in range(len(line) + 1):
        shown = await scene.show(line[:column] + "‸" + line[column:], "#", invoked=True)
        assert shown.halves == (line[:column], line[column:])
        assert shown.text is None or shown.result.startswith(line[:column] + "#")


@pytest.mark.parametrize(("units", "prefix"), [(7, 'x = "😋'), (9, 'x = "😋😋')])
async def test_utf16_columns_count_surrogate_pairs_twice(scene, units, prefix):
    # openlawlibrary/pygls#302, openlawlibrary/pygls#116
    shown = await scene.show('x = "😋😋‸"', "a")
    shown = await scene.ask(shown.uri, 0, units)
    assert shown.halves[0] == prefix
    assert shown.range == ((0, units), (0, units))
    assert shown.result == prefix + "a" + 'x = "😋😋"'[len(prefix) :]


async def test_a_column_inside_a_surrogate_pair_is_the_one_before_it(scene):
    shown = await scene.show('x = "😋😋‸"', "a")
    shown = await scene.ask(shown.uri, 0, 6)
    assert shown.halves[0] == 'x = "'
    assert shown.range == ((0, 5), (0, 5))


@pytest.mark.parametrize("char", ["\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"], ids=ascii)
async def test_only_lf_crlf_and_cr_end_a_line(scene, char):
    # NousResearch/hermes-agent#45393, huggingface/llm-ls#50
    uri, _, _ = scene.put(f"import os\n{char}\ndef f():\n    pass‸\n")
    scene.lsp.change(uri, (3, 8), (3, 8), "1")
    shown = await scene.ask(uri, 3, 9)
    before, after = shown.halves
    assert before.endswith("    pass1")
    assert before + after == scene.lsp.texts[uri] == f"import os\n{char}\ndef f():\n    pass1\n"


@pytest.mark.parametrize("eol", ["\n", "\r\n", "\r"], ids=ascii)
async def test_every_line_end_counts_once(scene, eol):
    uri, _, _ = scene.put(eol.join(["a", "b", "", "c‸"]))
    scene.lsp.change(uri, (1, 1), (2, 0), "")
    scene.lsp.change(uri, (1, 1), (1, 1), eol + "d")
    shown = await scene.ask(uri, 2, 1)
    assert shown.halves == ("a\nb\nd", "\nc")
    assert scene.lsp.texts[uri] == eol.join(["a", "b", "d", "c"])


@pytest.mark.parametrize("position", [(0, 3), (0, 99), (7, 0), (2**31 - 1, 0), (4294967295, 0), (0, 4294967295), (10**18, 10**18)])
async def test_a_position_past_the_end_is_the_end(scene, position):
    # huggingface/llm-vscode#107, huggingface/llm-ls#13, terror/just-lsp#385
    shown = await scene.show("abc‸", " = 1", invoked=True)
    shown = await scene.ask(shown.uri, *position)
    assert shown.halves == ("abc", "")
    assert shown.range == ((0, 3), (0, 3))
    await scene.alive()


@pytest.mark.parametrize("position", [(4294967295, 0), (0, 2**32), (99, 99)])
async def test_an_edit_past_the_end_is_one_at_the_end(scene, position):
    uri, _, _ = scene.put("abc‸")
    at = {"line": position[0], "character": position[1]}
    change = {"range": {"start": at, "end": at}, "text": "d"}
    scene.lsp.notify("textDocument/didChange", {"textDocument": {"uri": uri, "version": 9}, "contentChanges": [change]})
    scene.lsp.texts[uri] = "abcd"
    shown = await scene.ask(uri, 0, 4)
    assert shown.halves == ("abcd", "")


@pytest.mark.parametrize("range_", [None, ...], ids=["null", "absent"])
async def test_a_change_without_a_range_is_the_whole_text(scene, range_):
    uri, _, _ = scene.put("abc‸")
    change = {"text": "d = ", **({} if range_ is ... else {"range": range_})}
    scene.lsp.notify("textDocument/didChange", {"textDocument": {"uri": uri, "version": None}, "contentChanges": [change]})
    scene.lsp.texts[uri] = "d = "
    assert (await scene.ask(uri, 0, 4)).halves == ("d = ", "")


@pytest.mark.parametrize("change", [{}, {"text": None}, {"text": 1}, {"range": {"start": {"line": 0}}, "text": ""}, None, "text"])
async def test_a_document_with_an_edit_that_makes_no_sense_is_not_served_until_it_comes_anew(scene, change):
    uri, _, _ = scene.put("abc‸")
    scene.lsp.notify("textDocument/didChange", {"textDocument": {"uri": uri, "version": 1}, "contentChanges": [change]})
    shown = await scene.ask(uri, 0, 3, invoked=True)
    assert (shown.text, shown.requests) == (None, [])
    scene.lsp.open(uri, "abc = ")
    assert (await scene.ask(uri, 0, 6)).halves == ("abc = ", "")


def speaking(*encodings):
    return driver.VSCODE | {"capabilities": driver.VSCODE["capabilities"] | {"general": {"positionEncodings": list(encodings)}}}


@pytest.mark.parametrize(
    ("encoding", "marked", "units"),
    [
        ("utf-8", "имя = ‸", 9),
        ("utf-8", "é = ‸", 5),
        ("utf-8", "漢 = '😋' + ‸", 15),
        ("utf-16", "😋 = ‸", 5),
        ("utf-32", "имя = ‸", 6),
        ("utf-32", "漢 = '😋😋' + ‸", 11),
    ],
)
async def test_the_range_counts_in_the_units_that_were_agreed_on(tmp_path, encoding, marked, units):
    # zbirenbaum/copilot.lua#330, TabbyML/tabby#4532
    async with scenes.running(tmp_path, params=speaking(encoding)) as scene:
        assert scene.lsp.encoding == encoding
        shown = await scene.show(marked, "1")
        assert shown.halves == (marked.replace("‸", ""), "")
        assert shown.range == ((0, units), (0, units))
        assert shown.result == marked.replace("‸", "1")


async def test_an_editor_that_names_no_encoding_counts_in_utf16(tmp_path):
    async with scenes.running(tmp_path, params=speaking()) as scene:
        shown = await scene.show("'😋' + ‸", "1")
        assert shown.range == ((0, 7), (0, 7))
