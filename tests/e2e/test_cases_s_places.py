"""Kind S: where the cursor stands."""

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]

OPTIONS = {"completion": {"inComments": False}}


@pytest.mark.parametrize(
    ("marked", "language"),
    [
        ("x = 1  # todo ‸", "python"),  # microsoft/vscode#9504, slynch8/10x#48
        ("/* a ‸ */", "c"),
        ("/*\n * a ‸\n */\nint x;\n", "java"),
        ("// todo ‸", "rust"),
        ("-- todo ‸", "sql"),
        ("<!-- a ‸ -->", "html"),
        ("x = 'a' # it's ‸", "python"),
        ("/// Says ‸\nfn f() {}\n", "rust"),
        ("--[[ a ‸ ]]", "lua"),
    ],
)
async def test_in_comments_only_when_asked_by_hand(scene, marked, language):
    automatic = await scene.show(marked, "later", language=language)
    assert (automatic.text, automatic.requests) == (None, [])
    by_hand = await scene.ask(automatic.uri, *scene.lsp.position(automatic.uri, marked.index("‸")), invoked=True)
    assert by_hand.text == "later"


@pytest.mark.parametrize(
    ("marked", "language"),
    [
        ("x = '# no comment' + ‸", "python"),
        ("url = 'http://h/' + ‸", "javascript"),
        ("/* done */ x = ‸", "c"),
        ("# a comment\nx = ‸", "python"),
        ('x = "/* " + ‸', "java"),
        ("x = a // ‸", "python"),
        ("x = `\n// text ‸\n`;\n", "javascript"),
        ('def f():\n    """Do.\n\n    # text ‸\n    """\n', "python"),
    ],
)
async def test_what_only_looks_like_a_comment_is_served(scene, marked, language):
    assert len((await scene.show(marked, "y", language=language)).requests) == 1


async def test_comments_are_served_unless_the_option_is_off(start):
    async with start() as scene:
        assert len((await scene.show("x = 1  # todo ‸", "later")).requests) == 1


@pytest.mark.parametrize("marked", ["pri‸nt(x)", "a_‸b", "имя‸имя", "x = 1‸2", "_‸_init__"])
async def test_inside_a_word_only_when_asked_by_hand(scene, marked):
    # continuedev/continue#2987
    shown = await scene.show(marked, "XX")
    assert (shown.text, shown.requests) == (None, [])
    assert len((await scene.show(marked, "XX", invoked=True)).requests) == 1


@pytest.mark.parametrize(("marked", "said"), [("pri‸nt(x)", "nt(x)"), ("to‸tal", "tal"), ("self.na‸me = 1", "me = 1")])
async def test_the_rest_of_the_word_alone_is_nothing_new(scene, marked, said):
    # ggml-org/llama.vscode#13
    assert (await scene.show(marked, said, invoked=True)).text is None


@pytest.mark.parametrize("marked", ["‸print(x)", "print‸(x)", "f(‸x)", "x = ‸\n"])
async def test_at_the_edge_of_a_word_it_is_served(scene, marked):
    assert len((await scene.show(marked, "y")).requests) == 1
