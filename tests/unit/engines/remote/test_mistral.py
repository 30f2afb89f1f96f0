"""Mistral's fill-in route: two halves without markers, an answer in the form of a chat."""

from __future__ import annotations

import pytest

from monkeycode_lsp.domain import Sampling, Usage
from monkeycode_lsp.errors import ContextOverflowError, EngineRefusedError
from tests.fakes import mistral
from tests.unit.engines.remote import asking


async def test_a_request_is_this_byte_for_byte_and_usage_is_read_back() -> None:
    async with mistral.server(key="K1") as server, asking.engine(server.url, api="mistral", model="", api_key="K1") as engine:
        model = await engine.ready()
        chunks = await asking.chunks(engine, asking.fim("a", "b", stop=("1", "2", "3", "4", "5")))
        assert (model.name, model.family) == ("codestral-latest", None)
        assert server.requests[0].path == "/v1/fim/completions"
        assert server.requests[0].body == (
            b'{"model":"codestral-latest","prompt":"a","suffix":"b","max_tokens":96,"temperature":0.0,"stop":["1","2","3","4"],"stream":true}'
        )
        assert not server.others
    assert "".join(chunk.text for chunk in chunks) == "a + b"
    assert chunks[-1].usage == Usage(reused=None, read=1, generated=3, whole=1)


async def test_the_route_in_the_address_is_enough() -> None:
    async with mistral.server() as server, asking.engine(server.url + "/v1/fim/completions", model="") as engine:
        assert await asking.answer(engine, asking.plain("a", "b")) == "a + b"


async def test_every_sampling_is_understood() -> None:
    async with mistral.server() as server, asking.engine(server.url, api="mistral", model="") as engine:
        sampling = Sampling(temperature=2.0, top_p=0.9, min_p=0.1, repeat_penalty=1.2, seed=3)
        assert await asking.answer(engine, asking.plain(sampling=sampling)) == "a + b"
        asked = server.requests[0].json
    assert (asked["temperature"], asked["random_seed"]) == (1.5, 3)


async def test_refusals_are_told_as_what_they_are() -> None:
    async with mistral.server(key="K1", context_tokens=300) as server:
        async with asking.engine(server.url, api="mistral", model="nil", api_key="K1") as engine:
            with pytest.raises(EngineRefusedError, match="no model 'nil'"):
                await asking.answer(engine)
        async with asking.engine(server.url, api="mistral", model="", api_key="K1") as engine:
            with pytest.raises(ContextOverflowError) as caught:
                await asking.answer(engine, asking.plain("x" * 4000))
            assert caught.value.limit_tokens == 300
        async with asking.engine(server.url, api="mistral", model="", api_key="K2") as engine:
            with pytest.raises(EngineRefusedError, match="refused the key"):
                await asking.answer(engine)
