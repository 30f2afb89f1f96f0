"""Kind D: cleaning what the model says."""

import asyncio

import pytest

from tests import servers

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]

FENCE = "```"


@pytest.mark.parametrize(
    "tail", ["<|fim_middle|>", "<|endoftext|>", "<|file_sep|>b.py\nimport os", "<|fim_pad|>", "<|im_end|>\n", "<|repo_name|>w"]
)
@pytest.mark.parametrize("in_pieces", [False, True], ids=["whole", "in pieces"])
async def test_control_markers_are_never_shown(scene, tail, in_pieces):
    # continuedev/continue#1552, QwenLM/Qwen3-Coder#99
    said = servers.reply(*(list("a + b" + tail) if in_pieces else ["a + b" + tail]))
    shown = await scene.show("return ‸", said)
    assert shown.text == "a + b"


@pytest.mark.parametrize("tail", ["<\uff5cend▁of▁sentence\uff5c><\uff5cbegin▁of▁sentence\uff5c>import", "<\uff5cfim▁hole\uff5c>y"])
async def test_markers_with_full_width_bars_are_never_shown(scene, tail):
    # TabbyML/vim-tabby#19
    assert (await scene.show("y = ‸", "x" + tail)).text == "x"


@pytest.mark.parametrize(
    "said",
    [
        f"{FENCE}python\nreturn a\n{FENCE}",
        f"{FENCE}python\nreturn a\n{FENCE}\n",
        f"{FENCE}\nreturn a\n{FENCE}\nThis returns a.",
        f"Here is the code:\n{FENCE}python\nreturn a\n{FENCE}\nIt returns a.",
        f"Sure! The completion is:\n\n{FENCE}py\nreturn a\n{FENCE}",
    ],
)
async def test_a_markdown_fence_is_taken_off(scene, said):
    # chaitin/MonkeyCode#208
    shown = await scene.show("def f(a):\n    ‸\n", said)
    assert shown.result == "def f(a):\n    return a\n"


@pytest.mark.parametrize("line", ["x = 1\n", "    pass\n", "# \n"])
async def test_endless_repetition_is_cut(scene, line):
    # ggml-org/llama.cpp#26039
    n_sent = 0

    async def endless(exchange):
        nonlocal n_sent
        await exchange.head()
        for _ in range(500):
            if exchange.request.closed.is_set():
                return
            await exchange.text(line)
            n_sent += 1
            await asyncio.sleep(0.005)

    shown = await scene.show("def f():\n    ‸\n", endless)
    (request,) = shown.requests
    await asyncio.wait_for(request.closed.wait(), 5)
    assert n_sent < 100
    assert shown.text is None or shown.text.count(line.strip()) <= 1


async def test_a_number_without_end_is_cut_and_not_shown(scene):
    n_sent = 0

    async def endless(exchange):
        nonlocal n_sent
        await exchange.head()
        await exchange.text("1")
        for _ in range(500):
            if exchange.request.closed.is_set():
                return
            await exchange.text("0")
            n_sent += 1
            await asyncio.sleep(0.005)

    shown = await scene.show("print(‸", endless)
    (request,) = shown.requests
    await asyncio.wait_for(request.closed.wait(), 5)
    assert n_sent < 100
    assert shown.text is None


@pytest.mark.parametrize(
    ("marked", "said", "language"),
    [
        ("try:\n    ‸\n", "except OSError:\n    pass", "python"),
        ("for x in xs:\n    ‸\n", "for x in xs:", "python"),
    ],
)
async def test_what_only_goes_round_in_circles_is_not_shown(scene, marked, said, language):
    assert (await scene.show(marked, said, language=language)).text is None


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("n = 1\n\n# Test it:\nprint(f())\nprint(f())\n", "n = 1"),
        ("n = 1\n```\nThis sets n.", "n = 1"),
    ],
)
async def test_what_a_model_says_beyond_the_function_is_not_shown(scene, said, text):
    assert (await scene.show("def f():\n    ‸\n    return n\n", said)).text == text


@pytest.mark.parametrize(
    ("said", "texts"), [("na\0me", {None, "name", "na"}), ("ok\n\ufffd\ufffd", {None, "ok"}), ("\x1b[31mred", {None, "red", "[31mred"})]
)
async def test_broken_characters_are_not_inserted(scene, said, texts):
    # ggml-org/llama.cpp#11738, unslothai/llama.cpp#202
    shown = await scene.show("x = ‸", said)
    assert shown.text in texts


async def test_what_was_no_text_ends_the_answer_in_an_empty_block_too(scene):
    # ggml-org/llama.cpp#11738
    shown = await scene.show("def f():\n    ‸\n", "name = 1\n    other = '\ufffd\ufffd'\n    return name")
    assert (shown.text or "").strip() in {"", "name = 1"}
    shown = await scene.show("def f(a):\n    ‸\n", "\ufffd\ufffd")
    assert shown.text is None
