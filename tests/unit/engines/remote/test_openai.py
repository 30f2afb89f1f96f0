"""OpenAI's form: what is sent byte for byte, what is refused, what is read back."""

from __future__ import annotations

import pytest

from monkeycode_lsp import prompt
from monkeycode_lsp.domain import Finish, Sampling, Usage
from monkeycode_lsp.engines.remote.dialects.openai import OpenAI
from monkeycode_lsp.errors import ContextOverflowError, EngineRefusedError
from tests.fakes import openai
from tests.servers import DONE, event, reply, status, stream
from tests.servers import CompletionServer as Server
from tests.unit.engines.remote import asking

MODEL = "gpt-3.5-turbo-instruct"


async def test_a_request_is_this_byte_for_byte_and_usage_is_read_back() -> None:
    async with openai.server() as server, asking.engine(server.url, api="openai", model=MODEL) as engine:
        asked = asking.plain("abcdefgh", "b", max_tokens=7, stop=("1", "2", "3", "4", "5"), sampling=Sampling(0.2, 0.9, seed=3))
        for _ in range(2):
            chunks = await asking.chunks(engine, asked)
        assert server.requests[0].body == (
            b'{"model":"gpt-3.5-turbo-instruct","prompt":"abcdefgh","suffix":"b","max_tokens":7,"temperature":0.2,"top_p":0.9,"seed":3,'
            b'"stop":["1","2","3","4"],"stream":true,"stream_options":{"include_usage":true}}'
        )
    assert "".join(chunk.text for chunk in chunks) == "a + b"
    assert (chunks[-1].finish, chunks[-1].usage) == (Finish.STOP, Usage(reused=2, read=1, generated=3))


@pytest.mark.parametrize("fields", [("stream_options",), ("seed", "stop", "stream_options", "top_p")])
async def test_fields_that_a_server_refuses_by_name_are_left_away_for_good(fields: tuple[str, ...]) -> None:
    async with openai.server(refuses=fields) as server, asking.engine(server.url, model=MODEL) as engine:
        asked = asking.plain(stop=("x",), sampling=Sampling(0.2, 0.9, seed=3))
        for _ in range(3):
            assert await asking.answer(engine, asked) == "a + b"
        assert len(server.requests) == 3 + len(fields)
        assert not set(server.requests[-1].json).intersection(fields)


async def test_a_suffix_that_is_refused_is_told_once() -> None:
    told: list[str] = []
    async with openai.server(suffix=False) as server, asking.engine(server.url, model=MODEL, told=told) as engine:
        for _ in range(2):
            assert await asking.answer(engine, asking.plain()) == "a + b"
        assert ["suffix" in request.json for request in server.requests] == [True, False, False]
    assert len(told) == 1


async def test_a_prompt_that_is_too_long_and_a_wrong_model_are_told_as_such() -> None:
    async with openai.server(context_tokens=300) as server:
        async with asking.engine(server.url, model=MODEL) as engine:
            with pytest.raises(ContextOverflowError) as caught:
                await asking.answer(engine, asking.plain("x" * 4000))
            assert caught.value.limit_tokens == 300
        async with asking.engine(server.url, model="gpt-none") as engine:
            with pytest.raises(EngineRefusedError, match=r"no model 'gpt-none'.*`model`"):
                await asking.answer(engine)


async def test_an_error_in_a_stream_that_began_well_is_an_error() -> None:
    overflow = {"error": {"message": "This model's maximum context length is 4097 tokens.", "code": 400}}
    async with Server(stream(event(overflow), DONE)) as server, asking.engine(server.url, api="openai") as engine:
        with pytest.raises(ContextOverflowError):
            await asking.answer(engine)


async def test_a_named_model_of_a_known_family_is_asked_for_at_once_where_the_api_is_set() -> None:
    async with Server(reply("ok")) as server, asking.engine(server.url, api="openai") as engine:
        assert await asking.answer(engine) == "ok"
        assert not server.others


@pytest.mark.parametrize("pages", [status(403, "no"), status(404), status(200, {"data": None}), status(200, "<html>")])
async def test_a_named_model_needs_no_list(pages: object) -> None:
    async with Server(routes={"/v1/models": pages}) as server, asking.engine(server.url, api="openai", model="who") as engine:  # type: ignore[dict-item]  # a script
        assert await asking.answer(engine, asking.plain()) == "ok"


@pytest.mark.parametrize(
    ("cards", "model", "name", "family", "window"),
    [
        ([{"id": "a"}, {"id": "b"}], "", "a", None, None),
        ([{"id": "a"}, {"id": "b", "root": "/m/Qwen2.5-Coder-7B", "max_model_len": 4096}], "b", "b", "qwen2.5-coder", 4096),
        ([{"id": "a"}], "elsewhere", "elsewhere", None, None),
        ([{"id": "x", "root": "codellama-7b"}], "", "x", "codellama", None),
        ([{"id": "l", "root": "/l", "parent": "starcoder2-3b"}], "l", "l", "starcoder2", None),
        (
            [{"id": "l", "root": "/l", "parent": "p"}, {"id": "p", "root": "org/starcoder2", "max_model_len": 8192}],
            "l",
            "l",
            "starcoder2",
            8192,
        ),
    ],
)
async def test_a_name_that_tells_nothing_is_looked_up_in_the_servers_list(
    cards: list[dict[str, object]], model: str, name: str, family: str | None, window: int | None
) -> None:
    async with Server(routes={"/v1/models": status(200, {"data": cards})}) as server, asking.engine(server.url, model=model) as engine:
        known = await engine.ready()
    assert (known.name, known.family, known.context_tokens) == (name, prompt.by_name(family) if family else None, window)


@pytest.mark.parametrize(
    ("cards", "model", "name", "window"),
    [
        ([{"id": None}, {"id": "qwen2.5-coder", "max_model_len": "4096"}], "", "qwen2.5-coder", 4096),
        ([{"id": "x", "owned_by": ["a"]}, {"id": "qwen2.5-coder", "max_model_len": 4096.5}], "", "qwen2.5-coder", 4096),
        ([{"id": "qwen2.5-coder", "owned_by": [], "root": 7, "parent": {}, "max_model_len": []}], "", "qwen2.5-coder", None),
        ([{"id": "bge-m3"}, {"id": "qwen2.5-coder-1.5b"}], "", "qwen2.5-coder-1.5b", None),
        ([{"id": "text-embedding-3"}, {"id": "Qwen3-Reranker-4B"}, {"id": "who"}], "", "who", None),
        ([{"id": "who"}, {"id": "codestral-embed"}, {"id": "starcoder2-3b"}], "", "starcoder2-3b", None),
        ([{"id": "bge-m3"}], "", "bge-m3", None),
        ([{"id": "x" * 900_000}, {"id": "qwen2.5-coder"}], "", "qwen2.5-coder", None),
        ([{"id": "who", "max_model_len": -1}], "who", "who", None),
        ([{"id": "who", "max_model_len": 5}], "who", "who", None),
        ([{"id": "who", "max_model_len": 10**18}], "who", "who", None),
        ([{"id": "qwen2.5-coder"}, *({"id": str(number), "about": "x" * 1000} for number in range(1500))], "", "qwen2.5-coder", None),
    ],
)
async def test_a_list_is_read_whatever_stands_in_it(cards: list[dict[str, object]], model: str, name: str, window: int | None) -> None:
    async with Server(routes={"/v1/models": status(200, {"data": cards})}) as server, asking.engine(server.url, model=model) as engine:
        known = await engine.ready()
    assert (known.name, known.context_tokens) == (name, window)


DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize("body", [DEEP, b'{"data":' + DEEP + b"}", b'{"data":[{"id":"a","more":' + DEEP + b"}]}"])
async def test_a_list_of_endless_depth_is_no_list(body: bytes) -> None:
    async with Server(routes={"/v1/models": status(200, body)}) as server, asking.engine(server.url, model="") as engine:
        assert await asking.answer(engine, asking.plain()) == "ok"


def test_a_server_that_tells_nothing_of_its_cache_tells_the_whole_prompt_all_the_same() -> None:
    usage = OpenAI().read(b'{"choices":[],"usage":{"prompt_tokens":900,"completion_tokens":2}}').usage
    assert usage == Usage(read=900, generated=2, whole=900)
    assert usage.prompt_tokens == 900
    nothing = OpenAI().read(b'{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":2}}').usage
    assert nothing is not None
    assert nothing.prompt_tokens is None


@pytest.mark.parametrize("odd", [-3, 10**30, 1e300, "many", [], {}])
async def test_figures_that_cannot_be_do_no_harm_to_the_answer(odd: object) -> None:
    usage = {"prompt_tokens": odd, "completion_tokens": odd, "prompt_tokens_details": {"cached_tokens": odd}}
    told = event({"choices": [{"text": "x", "finish_reason": "stop"}], "usage": usage})
    async with Server(stream(told, DONE)) as server, asking.engine(server.url, api="openai") as engine:
        (chunk,) = [chunk for chunk in await asking.chunks(engine) if chunk.finish]
    assert chunk.usage in (None, Usage())
