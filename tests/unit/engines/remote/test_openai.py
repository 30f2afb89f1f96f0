"""OpenAI's form: what is sent byte for byte, what is refused, what is read back."""

from __future__ import annotations

import pytest

from monkeycode_lsp import prompt
from monkeycode_lsp.domain import Finish, Sampling, Usage
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
    async with openai.server(context_tokens=100) as server:
        async with asking.engine(server.url, model=MODEL) as engine:
            with pytest.raises(ContextOverflowError) as caught:
                await asking.answer(engine, asking.plain("x" * 800))
            assert caught.value.limit_tokens == 100
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
        ([{"id": "a"}, {"id": "qwen2.5-coder"}], "", "a", None, None),
        ([{"id": "a"}, {"id": "b", "root": "/m/Qwen2.5-Coder-7B", "max_model_len": 9}], "b", "b", "qwen2.5-coder", 9),
        ([{"id": "a"}], "elsewhere", "elsewhere", None, None),
        ([{"id": "x", "root": "codellama-7b"}], "", "x", "codellama", None),
        ([{"id": "l", "root": "/l", "parent": "starcoder2-3b"}], "l", "l", "starcoder2", None),
        ([{"id": "l", "root": "/l", "parent": "p"}, {"id": "p", "root": "org/starcoder2", "max_model_len": 8}], "l", "l", "starcoder2", 8),
    ],
)
async def test_a_name_that_tells_nothing_is_looked_up_in_the_servers_list(
    cards: list[dict[str, object]], model: str, name: str, family: str | None, window: int | None
) -> None:
    async with Server(routes={"/v1/models": status(200, {"data": cards})}) as server, asking.engine(server.url, model=model) as engine:
        known = await engine.ready()
    assert (known.name, known.family, known.context_tokens) == (name, prompt.by_name(family) if family else None, window)
