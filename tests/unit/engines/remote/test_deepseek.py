"""DeepSeek's beta: two halves without markers, figures about its cache, an account that may be empty."""

from __future__ import annotations

import pytest

from monkeycode_lsp.domain import Usage
from monkeycode_lsp.errors import ContextOverflowError, EngineRefusedError
from tests.fakes import deepseek
from tests.unit.engines.remote import asking


@pytest.mark.parametrize("path", ["", "/", "/v1", "/beta", "/beta/", "/beta/completions"])
async def test_every_form_of_the_address_gives_this_request_byte_for_byte(path: str) -> None:
    async with deepseek.server() as server, asking.engine(server.url + path, api="deepseek", model="") as engine:
        for _ in range(2):
            chunks = await asking.chunks(engine, asking.fim("abcdefgh", "b"))
        assert server.requests[0].path == "/beta/completions"
        assert server.requests[0].body == (
            b'{"model":"deepseek-chat","prompt":"abcdefgh","suffix":"b","max_tokens":96,"temperature":0.0,"stream":true,'
            b'"stream_options":{"include_usage":true},"logprobs":1}'
        )
    assert "".join(chunk.text for chunk in chunks) == "a + b"
    assert chunks[-1].usage == Usage(reused=2, read=1, generated=3)
    assert [chunk.logprob for chunk in chunks if chunk.text] == [-0.25] * 3


async def test_the_beta_route_in_the_address_is_enough() -> None:
    async with deepseek.server() as server, asking.engine(server.url + "/beta/completions", model="") as engine:
        assert await asking.answer(engine) == "a + b"


async def test_refusals_are_told_as_what_they_are() -> None:
    async with deepseek.server(paid=False) as server, asking.engine(server.url, api="deepseek", model="") as engine:
        with pytest.raises(EngineRefusedError, match="pay"):
            await asking.answer(engine)
    async with deepseek.server(key="K1", context_tokens=300) as server:
        async with asking.engine(server.url, api="deepseek", model="nil", api_key="K1") as engine:
            with pytest.raises(EngineRefusedError, match="no model 'nil'"):
                await asking.answer(engine)
        async with asking.engine(server.url, api="deepseek", model="", api_key="K1") as engine:
            with pytest.raises(ContextOverflowError) as caught:
                await asking.answer(engine, asking.plain("x" * 4000))
            assert caught.value.limit_tokens == 300
        async with asking.engine(server.url, api="deepseek", model="deepseek-chat", api_key="K2") as engine:
            with pytest.raises(EngineRefusedError, match="refused the key"):
                await asking.answer(engine)
