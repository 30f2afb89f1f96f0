"""SGLang: a suffix that must be empty, a priority for what is urgent, refusals inside the stream."""

from __future__ import annotations

import pytest

from monkeycode_lsp.domain import Priority, Usage
from monkeycode_lsp.errors import ContextOverflowError
from tests.fakes import openai, sglang
from tests.servers import CompletionServer, hold, status
from tests.unit.engines.remote import asking


async def test_a_request_is_this_byte_for_byte_and_cached_tokens_are_read_back() -> None:
    async with sglang.server() as server, asking.engine(server.url, model="") as engine:
        for _ in range(2):
            chunks = await asking.chunks(engine)
        assert server.requests[0].body == (
            b'{"model":"Qwen/Qwen2.5-Coder-1.5B","prompt":"<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>","suffix":"","max_tokens":96,'
            b'"temperature":0.0,"stream":true,"stream_options":{"include_usage":true},"repetition_penalty":1.0,"logprobs":0}'
        )
        assert [request.path for request in server.others] == ["/v1/models", "/get_server_info"]
    assert "".join(chunk.text for chunk in chunks) == "a + b"
    assert chunks[-1].usage == Usage(reused=11, read=1, generated=3)


async def test_it_says_how_sure_it_is() -> None:
    async with sglang.server() as server, asking.engine(server.url, model="") as engine:
        assert (await engine.ready()).tells_confidence
        assert [chunk.logprob for chunk in await asking.chunks(engine) if chunk.text] == [-0.25] * 3


async def test_a_gateway_that_refuses_log_probabilities_is_asked_without_them() -> None:
    async with openai.server(model="m", refuses=("logprobs",)) as server, asking.engine(server.url, api="sglang", model="m") as engine:
        for _ in range(2):
            assert await asking.answer(engine) == "a + b"
        assert "logprobs" in server.requests[0].json
        assert ["logprobs" in request.json for request in server.requests[-2:]] == [False, False]
        assert not (await engine.ready()).tells_confidence


@pytest.mark.parametrize("how", [{"priority": False}, {"priority": False, "tells_settings": False}, {"priority": True}])
async def test_what_is_urgent_has_a_priority_where_the_server_knows_them(how: dict[str, bool]) -> None:
    async with sglang.server(**how) as server, asking.engine(server.url, model="") as engine:
        for priority in (Priority.INTERACTIVE, Priority.LOOK_AHEAD):
            assert await asking.answer(engine, asking.fim(priority=priority)) == "a + b"
        assert [request.json.get("priority") for request in server.requests] == [0 if how["priority"] else None, None]


@pytest.mark.parametrize(("template", "suffix", "n_told"), [(None, "", 1), ("qwen_coder", "b", 0)])
async def test_it_inserts_by_itself_only_with_a_template_of_its_own(template: str | None, suffix: str, n_told: int) -> None:
    told: list[str] = []
    async with sglang.server(model="who", template=template) as server, asking.engine(server.url, model="", told=told) as engine:
        assert await asking.answer(engine, asking.plain("a", "b")) == "a + b"
        assert server.requests[0].json["suffix"] == suffix
    assert len(told) == n_told


async def test_a_template_of_the_servers_own_leaves_a_marked_prompt_alone() -> None:
    async with sglang.server(template="qwen_coder") as server, asking.engine(server.url, model="") as engine:
        usage = (await asking.chunks(engine))[-1].usage
    assert usage is not None
    assert usage.read == len("<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>") // 4 + 1


async def test_an_overflow_that_comes_in_the_stream_teaches_the_window() -> None:
    async with sglang.server(context_tokens=300) as server, asking.engine(server.url, model="") as engine:
        with pytest.raises(ContextOverflowError) as caught:
            await asking.answer(engine, asking.fim("x" * 4000))
        assert caught.value.limit_tokens == 300


async def test_a_page_of_facts_that_does_not_come_does_no_harm() -> None:
    cards = {"data": [{"id": "qwen2.5-coder", "owned_by": "sglang", "max_model_len": 4096}]}
    routes = {"/v1/models": status(200, cards), "/get_server_info": hold}
    async with CompletionServer(routes=routes) as server, asking.engine(server.url, model="", remote={"timeout_ms": 10_000}) as engine:
        assert await asking.answer(engine) == "ok"
