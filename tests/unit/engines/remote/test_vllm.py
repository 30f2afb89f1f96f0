"""vLLM: OpenAI's route with what vLLM knows more."""

from __future__ import annotations

import pytest

from monkeycode_lsp import prompt
from monkeycode_lsp.domain import Priority, Sampling, Usage
from monkeycode_lsp.errors import ContextOverflowError, EngineRefusedError
from tests.fakes import vllm
from tests.unit.engines.remote import asking

MODEL = "Qwen/Qwen2.5-Coder-1.5B"
MARKED = '"prompt":"<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>"'


async def test_a_request_is_this_byte_for_byte_and_cached_tokens_are_read_back() -> None:
    async with vllm.server() as server, asking.engine(server.url, model="") as engine:
        for _ in range(2):
            chunks = await asking.chunks(engine, asking.fim("a", "b"))
        assert server.requests[0].body.decode() == (
            f'{{"model":"{MODEL}",{MARKED},"max_tokens":96,"temperature":0.0,"stream":true,"stream_options":{{"include_usage":true}},'
            '"repetition_penalty":1.0}'
        )
        assert [request.path for request in server.others] == ["/v1/models", "/version"]
    assert "".join(chunk.text for chunk in chunks) == "a + b"
    assert chunks[-1].usage == Usage(reused=11, read=1, generated=3)


@pytest.mark.parametrize(("version", "tells"), [("0.14.0", True), ("1.2.3rc1", True), ("0.13.9", False), ("", False), ("main", False)])
async def test_log_probabilities_are_asked_for_where_they_do_not_stop_the_drafts(version: str, tells: bool) -> None:  # noqa: FBT001 - a table
    async with vllm.server(version=version) as server, asking.engine(server.url, model="") as engine:
        assert (await engine.ready()).tells_confidence is tells
        chunks = await asking.chunks(engine)
        assert server.requests[0].json.get("logprobs") == (0 if tells else None)
    told = [(chunk.logprob, chunk.n_tokens) for chunk in chunks if chunk.text]
    assert told == [(-0.25, 1)] * 3 if tells else [(None, 0)] * 3


async def test_a_server_that_does_not_count_cached_tokens_is_not_said_to_have_none() -> None:
    async with vllm.server(tells_cached=False) as server, asking.engine(server.url, model="") as engine:
        usage = (await asking.chunks(engine))[-1].usage
    assert usage is not None
    assert usage.reused is None


async def test_the_sampling_is_said_in_its_words() -> None:
    async with vllm.server() as server, asking.engine(server.url, model="") as engine:
        await asking.answer(engine, asking.fim(sampling=Sampling(temperature=0.5, min_p=0.1, repeat_penalty=1.1)))
        asked = server.requests[0].json
    assert (asked["temperature"], asked["top_p"], asked["min_p"], asked["repetition_penalty"]) == (0.5, 1.0, 0.1, 1.1)


async def test_only_what_is_not_urgent_has_a_priority_and_a_server_without_them_refuses_it_once() -> None:
    async with vllm.server() as server, asking.engine(server.url, model="") as engine:
        assert await asking.answer(engine) == "a + b"
        for _ in range(2):
            assert await asking.answer(engine, asking.fim(priority=Priority.LOOK_AHEAD)) == "a + b"
        assert [request.json.get("priority") for request in server.requests] == [None, 1, None, None]
    async with vllm.server(priority=True) as server, asking.engine(server.url, model="") as engine:
        for _ in range(2):
            assert await asking.answer(engine, asking.fim(priority=Priority.BATCH)) == "a + b"
        assert [request.json.get("priority") for request in server.requests] == [3, 3]


async def test_a_refused_suffix_is_not_sent_again_and_the_cut_is_told() -> None:
    told: list[str] = []
    async with vllm.server(model="who") as server, asking.engine(server.url, model="", told=told) as engine:
        for _ in range(2):
            assert await asking.answer(engine, asking.plain("a", "b")) == "a + b"
        assert ["suffix" in request.json for request in server.requests] == [True, False, False]
    assert len(told) == 1
    assert "fill in the middle" in told[0]


@pytest.mark.parametrize("model", ["", "team", "tuned"])
async def test_the_family_of_an_alias_and_of_an_adapter_is_that_of_what_is_loaded(model: str) -> None:
    async with (
        vllm.server(model="team", root="/models/Qwen2.5-Coder-7B", adapters=("tuned",), context_tokens=4096) as server,
        asking.engine(server.url, model=model) as engine,
    ):
        known = await engine.ready()
        assert (known.name, known.family, known.context_tokens) == (model or "team", prompt.by_name("qwen2.5-coder"), 4096)
        assert await asking.answer(engine) == "a + b"


@pytest.mark.parametrize("old", [False, True])
async def test_a_prompt_that_is_too_long_and_a_wrong_model_are_told_as_such(old: bool) -> None:  # noqa: FBT001 - both forms of an error
    async with vllm.server(context_tokens=300, old=old) as server:
        async with asking.engine(server.url, model=MODEL) as engine:
            with pytest.raises(ContextOverflowError) as caught:
                await asking.answer(engine, asking.fim("x" * 4000))
            assert caught.value.limit_tokens == 300
        async with asking.engine(server.url, model="qwen2.5-coder-none") as engine:
            with pytest.raises(EngineRefusedError, match=r"no model 'qwen2\.5-coder-none'"):
                await asking.answer(engine)


async def test_a_server_that_wants_a_key_says_so() -> None:
    async with vllm.server(key="K1") as server:
        async with asking.engine(server.url, model="") as engine:
            with pytest.raises(EngineRefusedError, match=r"wants a key.*apiKey"):
                await asking.answer(engine)
        async with asking.engine(server.url, model="", api_key="K1") as engine:
            assert await asking.answer(engine) == "a + b"
