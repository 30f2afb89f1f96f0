"""Kind J: size and the limits of the context."""

import asyncio

import pytest

from monkeycode_lsp.context import tokens
from tests import servers
from tests.e2e.scene import halves

pytestmark = pytest.mark.e2e

ASK_TO_REQUEST_S = 0.1
"""Decision 4: the 95th percentile at debounce 0."""
WINDOW = 2_048
BUDGET_TOKENS = 1_280
"""1,024 before the cursor and 256 after it."""


async def test_typing_in_a_very_long_file_stays_quick(start):
    # microsoft/vscode#34655
    async with start() as scene:
        uri, middle = scene.uri(), 50_000
        scene.lsp.open(uri, "x123 = 123\n" * 100_000)
        assert (await scene.ask(uri, 0, 0)).requests
        took = []
        for n in range(20):
            at = {"line": middle, "character": 10 + n}
            change = {"range": {"start": at, "end": at}, "text": "4"}
            scene.lsp.notify("textDocument/didChange", {"textDocument": {"uri": uri, "version": n + 1}, "contentChanges": [change]})
            sent = asyncio.get_running_loop().time()
            asked = scene.lsp.ask(uri, middle, 11 + n, invoked=True)
            await asked
            request = scene.backend.requests[-1]
            took.append(request.at - sent)
            before, after = halves(request)
            assert before.endswith("x123 = 123\nx123 = 123" + "4" * (n + 1))
            assert after.startswith("\nx123 = 123\n")
            assert len(before) + len(after) < 8_000
        assert sorted(took)[18] < ASK_TO_REQUEST_S, took


async def test_a_document_that_is_too_large_is_not_served(start):
    async with start() as scene:
        uri, _, _ = scene.put("x = 1\n" * 1_400_000 + "‸")
        assert (await scene.ask(uri, 1_400_000, 0, invoked=True)).requests == []
        scene.lsp.whole(uri, "x = ")
        assert (await scene.ask(uri, 0, 4)).text == "ok"


@pytest.mark.parametrize("length", [100_000, 1_000_000])
async def test_one_endless_line_is_cut_to_the_budget(start, length):
    async with start() as scene:
        uri, _, _ = scene.put("‸")
        scene.lsp.whole(uri, "x" * length + "= " + "y" * length)
        before, after = (await scene.ask(uri, 0, length + 2, invoked=True)).halves
        assert before.endswith("xx= ")
        assert after.startswith("yy")
        assert 0.8 * BUDGET_TOKENS <= tokens.estimate(before + after) <= 1.1 * BUDGET_TOKENS


def window_of(n_tokens, tokens_of):
    """What vLLM says when prompt and answer do not fit."""

    async def script(exchange):
        body = exchange.request.json
        asked = int(tokens_of(body["prompt"]))
        if asked + body["max_tokens"] > n_tokens:
            message = (
                f"This model's maximum context length is {n_tokens} tokens. However, you requested {asked + body['max_tokens']} "
                f"tokens ({asked} in your prompt; {body['max_tokens']} for the completion). Please reduce your prompt."
            )
            await exchange.respond(400, {"object": "error", "message": message, "type": "BadRequestError", "code": 400})
        else:
            await servers.reply("ok")(exchange)

    return script


def letters(letter, last):
    """6,000 of them."""
    return (letter * 29 + "\n") * 200 + last


@pytest.mark.parametrize("tokens_per_letter", [3.0, 4.0])
async def test_a_prompt_that_is_too_long_is_shortened_once_and_the_limit_remembered(start, tokens_per_letter):
    # abetlen/llama-cpp-python#462, vllm-project/vllm#19861, vllm-project/vllm#20409
    script = window_of(WINDOW, lambda prompt: tokens_per_letter * len(prompt))
    async with start(script) as scene:
        first = await scene.show(letters("字", "x = ‸"), script)
        assert first.text == "ok"
        assert len(first.requests) == 2
        second = await scene.show(letters("漢", "y = ‸"), script)
        assert (second.text, len(second.requests)) == ("ok", 1)
        assert scene.lsp.shown_messages == []


async def test_a_window_that_stays_too_small_costs_one_retry_for_each_ask(start):
    script = window_of(WINDOW, lambda prompt: 20 * len(prompt))
    async with start(script) as scene:
        counts = []
        for n in range(6):
            shown = await scene.show(letters("字", f"x{n} = ‸"), script)
            counts.append(len(shown.requests))
        assert max(counts) <= 2
        assert shown.text == "ok"


async def test_an_overflow_that_looks_like_an_empty_answer_shortens_the_next_prompt(start):
    # vllm-project/vllm#525
    overflow = servers.reply("", finish="length")
    async with start(overflow) as scene:
        long = "x = 1\n" * 2_000
        first = await scene.show(long + "a = ‸", overflow)
        assert first.text is None
        lengths = [len(request.json["prompt"]) for request in first.requests]
        second = await scene.ask(first.uri, 2_000, 4)
        assert second.requests  # not remembered
        assert len(second.requests[0].json["prompt"]) < lengths[0]
        scene.says.script = servers.reply("ok")
        assert (await scene.ask(first.uri, 2_000, 4)).text == "ok"


def overflows_in_a_stream(n_tokens, *, says):
    """A server that begins its answer before it has counted the prompt: three tokens a letter."""

    async def script(exchange):
        if 3 * len(exchange.request.json["prompt"]) + exchange.request.json["max_tokens"] > n_tokens:
            await servers.stream(says)(exchange)
        else:
            await servers.reply("ok")(exchange)

    return script


@pytest.mark.parametrize(
    "form",
    [b"data: %s\n\n", b"event: error\ndata: %s\n\n", b"error: %s\n\n", b'data: {"error":%s}\n\n', b'{"error":%s}', b"data: error %s\n\n"],
)
async def test_an_overflow_told_inside_a_stream_shortens_the_prompt_once_and_is_remembered(start, form):
    says = form % b'{"object":"error","code":400,"message":"This model has a maximum context length of 2048 tokens."}'
    script = overflows_in_a_stream(WINDOW, says=says)
    async with start(script) as scene:
        first = await scene.show(letters("字", "x = ‸"), script)
        assert (first.text, len(first.requests)) == ("ok", 2)
        second = await scene.show(letters("漢", "y = ‸"), script)
        assert (second.text, len(second.requests)) == ("ok", 1)
        assert scene.lsp.shown_messages == []


async def test_a_model_that_only_thinks_is_told_and_its_prompts_are_not_shortened(start):
    usage = {"prompt_tokens": 9, "completion_tokens": 96}
    thoughts = servers.stream(servers.event(servers.choice("", "length", usage=usage)), servers.DONE)
    async with start(thoughts) as scene:
        long = "x = 1\n" * 500
        lengths = []
        for name in "ab":
            shown = await scene.show(f"{long}{name} = ‸", thoughts)
            assert shown.text is None
            lengths += [len(request.json["prompt"]) for request in shown.requests]
        assert lengths == [lengths[0]] * 2
        (message,) = scene.lsp.shown_messages
        assert "think" in message
