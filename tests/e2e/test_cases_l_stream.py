"""Kind L, end to end: what odd streams become in the editor.  The parser has tests of its own."""

import json

import pytest

from tests import servers
from tests.servers import DONE, choice, event

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]

OPTIONS = {"cache": {"enabled": True}}


def text(said, finish=None):
    return event(choice(said, finish))


NO_BLANK = b"data:" + json.dumps(choice("ok")).encode() + b"\n\ndata:[DONE]\n\n"
NOISE = b": keep-alive\n\n\n\nevent: ping\n\nretry: 3000\n\n" + text("o") + b"data:\n\n: more\n" + text("k") + DONE
RAW = b"".join(b"data: " + json.dumps(choice(char), ensure_ascii=False).encode() + b"\n\n" for char in "'é漢😀'")


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        ((NO_BLANK,), "ok"),  # openai/openai-python#498, sgl-project/genai-bench#159, huggingface/huggingface_hub#4536
        ((NOISE,), "ok"),  # mistralai/mistral-vibe#774, a2aproject/a2a-python#540, openai/openai-python#2721
        (tuple(bytes([byte]) for byte in RAW + DONE), "'é漢😀'"),  # ggml-org/llama.cpp#28926, abetlen/llama-cpp-python#57
        ((text("ok", "stop"),), "ok"),  # lidge-jun/opencodex#1170: no [DONE]
        ((text("o") + text("k", "stop") + DONE,), "ok"),
        ((text("ok", "stop").replace(b"\n", b"\r\n"), DONE.replace(b"\n", b"\r\n")), "ok"),
        ((text("ok", "stop").replace(b"\n", b"\r"), DONE.replace(b"\n", b"\r")), "ok"),
        ((b"\xef", b"\xbb\xbf" + text("o"), text("k", "stop")), "ok"),
        ((text("ok", "stop"), text(" and more"), text("", "length"), event({"error": "x"})), "ok"),
        ((text("ok"), DONE, text(" and more"), b"\x00{"), "ok"),
        ((text("'\u2028\u2029\u0085'", "stop"),), "'\u2028\u2029\u0085'"),
        ((text("o\0\x1bk", "stop"),), "ok"),
        ((text("\ufeffok", "stop"),), "ok"),
        ((text("<think>Hm.</think>"), text("ok", "stop")), "ok"),
        ((event({"choices": [{"index": 0, "text": "", "reasoning_content": "hm"}]}), text("ok", "stop")), "ok"),
        ((event({"choices": [{"index": 1, "text": "no", "finish_reason": "stop"}]}), text("ok", "stop")), "ok"),
        ((event({"choices": [], "usage": {"prompt_tokens": 3}}), text("ok", "stop"), event({"choices": [], "usage": None}), DONE), "ok"),
        (((text("ok", "stop") + DONE).replace(b"data: ", b"data: data: "),), "ok"),  # paiml/aprender#2015
        ((json.dumps(choice("ok", "stop")).encode(),), "ok"),
    ],
)
async def test_good_streams_of_every_form_are_shown_and_remembered(scene, pieces, shown):
    script = servers.stream(*pieces)
    first = await scene.show(f"v{abs(hash(pieces))} = ‸", script)
    assert first.text == shown
    again = await scene.ask(first.uri, 0, len(scene.lsp.texts[first.uri]))
    assert (again.text, again.requests) == (shown, [])


async def breaks_off(exchange):
    await exchange.head()
    await exchange.text("ret")
    exchange.close()


async def resets(exchange):
    await exchange.head()
    await exchange.text("ret")
    exchange.reset()


BROKEN = [
    # ggml-org/llama.cpp#16109, octos-org/octos#13
    servers.stream(text("ret"), event({"error": {"message": "x"}}), DONE),
    servers.stream(event({"error": {"message": "x", "code": 500}})),
    # a variant of anomalyco/opencode#23442
    servers.stream(text("ret"), b'data: {"choices":[{"te\n\n', text("urn 1", "stop"), DONE),
    servers.stream(text("ret")),
    breaks_off,
    resets,
    # huggingface/llm-vscode#146, ggml-org/llama.vim#61
    servers.status(200, "<html><body>Log in</body></html>", "text/html"),
    servers.status(200, {}),
    servers.status(200, []),
    servers.status(200, {"error": "busy"}),
    servers.status(200, b""),
    servers.status(200, b"\xff\xfe\x00"),
]

ALSO_BROKEN = [
    servers.stream(text("ret"), b"event: error\ndata: out of memory\n\n"),
    servers.stream(text("ret"), b"error: out of memory\n\n", DONE),
    servers.stream(text("ret"), b'data: {"detail":"out of memory"}\n\n', DONE),
    servers.stream(text("ret"), b"data: error: out of memory\n\n", DONE),
    servers.stream(text("ret"), text(" and", "abort"), DONE),
    servers.stream(text("ret"), text("urn 1", "stop")[1:]),
    servers.stream(b'data: {"choices":[{"text":"\\ud800","finish_reason":"stop"}]}\n\n', DONE),
    servers.stream(b'data: {"choices":[{"text":"\xff","finish_reason":"stop"}]}\n\n', DONE),
    servers.stream(b'data: {"x":' + b"[" * 100_000 + b"\n\n", text("ok", "stop")),
    servers.stream(b'data: {"type":"ping"}\n\n', DONE),
    servers.stream(b": keep-alive\n\n"),
    servers.stream(b"\x00" * 10_000),
]


@pytest.mark.parametrize("script", BROKEN, ids=range(len(BROKEN)))
async def test_broken_streams_show_nothing_say_so_once_and_are_not_remembered(start, script):
    async with start(script) as scene:
        first = await scene.show("v = ‸", script)
        assert first.text is None
        await scene.ask(first.uri, 0, 4)
        assert len(scene.lsp.shown_messages) == 1
        assert "127.0.0.1" in scene.lsp.shown_messages[0]
        (outcome,) = await scene.lsp.why()
        assert (outcome["outcome"], bool(outcome["reason"])) == ("failed", True)
        scene.says.script = servers.reply("ok")
        again, _ = await scene.answered(first.uri, 0, 4)  # some failures are followed by a rest
        assert again.text == "ok"


async def test_no_form_of_an_error_or_of_damage_is_shown_or_remembered(start):
    async with start() as scene:
        for n, script in enumerate(ALSO_BROKEN):
            first = await scene.show(f"v{n} = ‸", script)
            assert (n, first.text) == (n, None)
            scene.says.script = servers.reply("ok")
            again, _ = await scene.answered(first.uri, 0, len(scene.lsp.texts[first.uri]))
            assert again.text == "ok"
        said = scene.lsp.shown_messages
        assert 0 < len(said) == len(set(said)) < len(ALSO_BROKEN)


@pytest.mark.parametrize("script", [breaks_off, resets, BROKEN[3]])
async def test_part_of_a_broken_answer_is_shown_only_when_asked_by_hand(start, script):
    # Decision 3
    async with start(script) as scene:
        by_hand = await scene.show("def f():\n    ‸", script, invoked=True)
        assert by_hand.text == "ret"
        scene.says.script = servers.reply("return 1")
        assert (await scene.ask(by_hand.uri, 1, 4)).text == "return 1"
