"""A server that only chats: found last, asked in words, said once."""

from __future__ import annotations

import pytest

from monkeycode_lsp.domain import Sampling, Usage
from monkeycode_lsp.engines.remote import dialects
from monkeycode_lsp.engines.remote.dialects.base import Call
from monkeycode_lsp.errors import ContextOverflowError, EngineRefusedError
from tests.fakes import chat
from tests.servers import CompletionServer, status
from tests.unit.engines.remote import asking

MODEL = "gpt-4o-mini"


async def test_nothing_better_is_there_so_it_is_asked_by_words_and_that_is_said_once() -> None:
    told: list[str] = []
    async with chat.server() as server, asking.engine(server.url, model=MODEL, told=told) as engine:
        for _ in range(2):
            chunks = await asking.chunks(engine, asking.plain("def f(a, b):\n    return ", "\n"))
        assert [request.path for request in server.requests] == ["/v1/completions", *["/v1/chat/completions"] * 2]
        asked = server.requests[-1].json
    assert "".join(chunk.text for chunk in chunks) == "a + b"
    assert asked["messages"][-1] == {"role": "user", "content": "def f(a, b):\n    return <GAP>\n"}
    assert {key: value for key, value in asked.items() if key != "messages"} == {
        "model": MODEL,
        "max_tokens": 96,
        "temperature": 0.0,
        "stop": ["<GAP>"],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.generated == 3
    assert len(told) == 1
    assert "only chats" in told[0]


async def test_a_model_that_is_not_for_this_route_is_asked_by_words_where_the_server_says_so() -> None:
    refusal = {"error": {"message": "This is a chat model and not supported in the v1/completions endpoint.", "param": "model"}}
    said = {"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}
    async with CompletionServer(status(404, refusal), status(200, said)) as server, asking.engine(server.url, model=MODEL) as engine:
        for _ in range(2):
            assert await asking.answer(engine, asking.plain()) == "ok"
        assert [request.path for request in server.requests] == ["/v1/completions", *["/v1/chat/completions"] * 2]


async def test_a_server_without_any_of_the_routes_is_not_said_to_chat() -> None:
    told: list[str] = []
    async with CompletionServer(status(404, {"detail": "Not Found"})) as server, asking.engine(server.url, told=told) as engine:
        with pytest.raises(EngineRefusedError, match=r"/v1/completions.*`url`"):
            await asking.answer(engine)
        assert [request.path for request in server.requests] == ["/v1/completions", "/v1/chat/completions"]
    assert not told


async def test_markers_are_for_models_that_know_them() -> None:
    async with chat.server(model="qwen2.5-coder") as server, asking.engine(server.url, api="chat") as engine:
        assert await asking.answer(engine, asking.fim("a", "b")) == "a + b"
        assert server.requests[0].json["messages"][-1]["content"] == "a<GAP>b"


def test_the_word_for_the_gap_does_not_occur_in_the_text() -> None:
    body = dialects.by_name("chat").body(Call("<GAP> <GAP-2>", suffix="x", stop=("1", "2", "3", "4")))
    assert b'"content":"<GAP> <GAP-2><GAP-3>x"' in body
    assert b'"stop":["<GAP-3>","1","2","3"]' in body


async def test_thoughts_are_no_answer() -> None:
    async with chat.server(thought="Let me see") as server, asking.engine(server.url, api="chat", model=MODEL) as engine:
        assert await asking.answer(engine, asking.plain()) == "a + b"


async def test_a_model_that_thinks_refuses_fields_and_gets_the_limit_by_its_new_name() -> None:
    refuses = ("max_tokens", "temperature", "top_p", "stop", "seed")
    async with chat.server(refuses=refuses) as server, asking.engine(server.url, api="chat", model=MODEL) as engine:
        asked = asking.plain(sampling=Sampling(0.2, 0.9, seed=1), max_tokens=7)
        for _ in range(2):
            assert await asking.answer(engine, asked) == "a + b"
        sent = server.requests[-1].json
        assert len(server.requests) == 2 + len(refuses)
    assert sent["max_completion_tokens"] == 7
    assert not set(sent).intersection(refuses)


async def test_refusals_are_told_as_what_they_are() -> None:
    async with chat.server(key="K1", context_tokens=300) as server:
        async with asking.engine(server.url, api="chat", model="nil", api_key="K1") as engine:
            with pytest.raises(EngineRefusedError, match="no model 'nil'"):
                await asking.answer(engine)
        async with asking.engine(server.url, api="chat", model=MODEL, api_key="K1") as engine:
            with pytest.raises(ContextOverflowError) as caught:
                await asking.answer(engine, asking.plain("x" * 4000))
            assert caught.value.limit_tokens == 300
        async with asking.engine(server.url, api="chat", model=MODEL, api_key="K2") as engine:
            with pytest.raises(EngineRefusedError, match="refused the key"):
                await asking.answer(engine)


def test_answers_in_parts_and_whole_ones_are_read() -> None:
    read = dialects.by_name("chat").read
    parts = b'{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"x"}]}}]}'
    assert read(parts).text == "x"
    whole = read(b'{"choices":[{"message":{"content":"y"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}')
    assert (whole.text, whole.usage) == ("y", Usage(reused=None, read=3, generated=1, whole=0))


@pytest.mark.parametrize("details", ["", ',"prompt_tokens_details":{"cached_tokens":100}'])
def test_what_our_own_words_take_is_no_part_of_what_the_users_text_takes(details: str) -> None:
    usage = dialects.by_name("chat").read(f'{{"choices":[],"usage":{{"prompt_tokens":1130{details}}}}}'.encode()).usage
    assert usage is not None
    assert 900 < (usage.prompt_tokens or 0) < 1050
