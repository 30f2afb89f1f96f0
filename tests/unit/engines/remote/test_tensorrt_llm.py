"""TensorRT-LLM: nothing that it does not know."""

from __future__ import annotations

import pytest

from monkeycode_lsp.domain import Priority, Sampling, Usage
from monkeycode_lsp.errors import ContextOverflowError
from tests.fakes import tensorrt_llm
from tests.unit.engines.remote import asking


async def test_a_request_is_this_byte_for_byte_and_cached_tokens_are_read_back() -> None:
    async with tensorrt_llm.server() as server, asking.engine(server.url, model="") as engine:
        for _ in range(2):
            chunks = await asking.chunks(engine)
        assert server.requests[0].body == (
            b'{"model":"Qwen2.5-Coder-1.5B","prompt":"<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>","max_tokens":96,"temperature":0.0,'
            b'"stream":true,"stream_options":{"include_usage":true},"repetition_penalty":1.0}'
        )
        assert len(server.requests) == 2
    assert "".join(chunk.text for chunk in chunks) == "a + b"
    assert chunks[-1].usage == Usage(reused=11, read=1, generated=3)


async def test_everything_that_may_be_said_is_understood() -> None:
    sampling = Sampling(temperature=0.5, top_p=0.9, min_p=0.1, repeat_penalty=1.1, seed=3)
    async with tensorrt_llm.server() as server, asking.engine(server.url, model="") as engine:
        assert await asking.answer(engine, asking.fim(sampling=sampling, stop=("x",), priority=Priority.LOOK_AHEAD)) == "a + b"
        assert server.requests[0].json["priority"] == 0.4
        assert len(server.requests) == 1


async def test_a_release_without_priorities_refuses_one_once() -> None:
    async with tensorrt_llm.server(priority=False) as server, asking.engine(server.url, model="") as engine:
        for _ in range(2):
            assert await asking.answer(engine, asking.fim(priority=Priority.BATCH)) == "a + b"
        assert [request.json.get("priority") for request in server.requests] == [0.2, None, None]


async def test_a_prompt_that_is_too_long_teaches_the_window() -> None:
    async with tensorrt_llm.server(context_tokens=300) as server, asking.engine(server.url, model="") as engine:
        with pytest.raises(ContextOverflowError) as caught:
            await asking.answer(engine, asking.fim("x" * 4000))
        assert caught.value.limit_tokens == 300


async def test_it_is_never_asked_with_a_suffix() -> None:
    told: list[str] = []
    async with tensorrt_llm.server(model="who") as server, asking.engine(server.url, model="", told=told) as engine:
        assert await asking.answer(engine, asking.plain("a", "b")) == "a + b"
        assert len(server.requests) == 1
    assert len(told) == 1
