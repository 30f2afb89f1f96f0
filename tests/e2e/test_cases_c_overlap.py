"""Kind C: overlap with the text before or after the cursor."""

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]


@pytest.mark.parametrize(
    ("marked", "said", "result"),
    [
        ("print(‸)", '"hi")', 'print("hi")'),  # TabbyML/tabby#575, continuedev/continue#3200, microsoft/vscode#156312
        ("print[‸]", '"hi"]', 'print["hi"]'),
        ("x = {‸}", '"a": 1}', 'x = {"a": 1}'),
        ("x = '‸'", "hi'", "x = 'hi'"),
        ("print(f(‸))", "1))", "print(f(1))"),
        ("f(‸)", "g()", "f(g())"),  # milanglacier/minuet-ai.nvim#100
        ("f(‸)", "g(h(1), [2])", "f(g(h(1), [2]))"),
        ("x = [‸]", "[1], [2]", "x = [[1], [2]]"),
        ("x = foo(‸) + 1", "a, b) + 1", "x = foo(a, b) + 1"),  # microsoft/vscode#170538, microsoft/vscode#211501
        ("x = foo(‸) + 1", "a, b", "x = foo(a, b) + 1"),
        ("x = [‸]", "[]", "x = [[]]"),
        ("foo(bar(‸))", "1), 2)", "foo(bar(1))"),
        ("x = {‸}", '"a": {}}', 'x = {"a": {}}'),
        ('print("‸")', 'hi")', 'print("hi")'),
        ("print(a, ‸b)", "c, b)", "print(a, c, b)"),
        ("def f(xs):\n    ‸\n\n    return 0\n", "xs.sort()\n    return 0\n", "def f(xs):\n    xs.sort()\n\n    return 0\n"),
        ('"""‸"""', 'Doc."""', '"""Doc."""'),  # TabbyML/tabby#1265
        ("def f():\n    a = 1\n    ‸\n    return a\n", "a += 1\n    return a\n", "def f():\n    a = 1\n    a += 1\n    return a\n"),
    ],
)
async def test_nothing_is_doubled_and_nothing_is_lost(scene, marked, said, result):
    # The last row: ggml-org/llama.vim#71, sourcegraph/cody#264
    shown = await scene.show(marked, said)
    assert shown.result == result
    (first, _), (last, _) = shown.range
    assert first == last == marked[: marked.index("‸")].count("\n")


@pytest.mark.parametrize(
    ("marked", "said", "result"), [("<div>‸</div>", "hi</div>", "<div>hi</div>"), ("<b>‸</b>", "hi</b>\n", "<b>hi</b>")]
)
async def test_closing_tags_are_not_doubled(scene, marked, said, result):
    # TabbyML/tabby#1265
    assert (await scene.show(marked, said, language="html", uri=scene.uri("page{}.html"))).result == result


@pytest.mark.parametrize(
    ("marked", "said"),
    [
        ("ret‸urn total", "urn total"),  # ggml-org/llama.vscode#13
        ("x = ‸total", "total"),
        ("    ‸\n    return a\n", "return a\n"),
        ("print(‸)", ")"),
    ],
)
async def test_what_is_there_already_is_not_suggested(scene, marked, said):
    shown = await scene.show(marked, said, invoked=True)
    assert shown.text is None


async def test_the_insert_text_stops_before_the_lines_that_follow(scene):
    # ggml-org/llama.vim#71, sourcegraph/cody#264
    shown = await scene.show("def f():\n    a = 1\n    ‸\n    return a\n", "a += 1\n    return a\n")
    assert shown.text == "a += 1"
