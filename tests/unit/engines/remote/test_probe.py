"""Which API a server is found to speak."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from monkeycode_lsp.engines.remote import address, probe
from monkeycode_lsp.errors import EngineBusyError, EngineError, EngineFaultError, EngineRefusedError, EngineUnavailableError
from tests.fakes import chat, openai, sglang, tensorrt_llm, vllm
from tests.servers import CompletionServer, hold, status
from tests.unit.engines.remote import asking

HERE = address.parse("http://h")
NOT_THERE = EngineUnavailableError("nobody")


def models(*owners: str | None) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": "m", "object": "model", "owned_by": owner} for owner in owners]}


async def found(pages: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The dialect's name and the pages that were asked for.  Pages that are not given are 404."""
    asked: list[str] = []

    async def fetch(path: str, body: bytes | None) -> bytes | None:
        asked.append(path)
        assert body is None
        await asyncio.sleep(0)
        page = pages.get(path)
        if isinstance(page, EngineError):
            raise page
        return page if page is None or isinstance(page, bytes) else json.dumps(page).encode()

    return (await probe.find(fetch, HERE)).name, asked


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        ("vllm", "vllm"),
        ("sglang", "sglang"),
        ("tensorrt_llm", "tensorrt-llm"),
        ("llamacpp", "llama-server"),
        ("library", "ollama"),
        ("organization_owner", "openai"),
        ("me", "openai"),
    ],
)
async def test_a_list_of_models_that_is_signed_is_enough(owner: str, name: str) -> None:
    assert await found({"/v1/models": models(owner)}) == (name, ["/v1/models"])


@pytest.mark.parametrize(
    ("pages", "name"),
    [
        ({"/props": {"default_generation_settings": {"n_ctx": 1}, "model_path": "x"}}, "llama-server"),
        ({"/get_model_info": {"model_path": "x", "is_generation": True}, "/api/version": {"version": "1"}}, "sglang"),
        ({"/api/version": {"version": "0.12.3"}}, "ollama"),
        ({}, "openai"),
        ({"/props": {"error": "Unexpected endpoint"}, "/api/version": {"error": "Unexpected endpoint"}}, "openai"),
        ({"/props": b"<html>", "/get_model_info": b"[]", "/api/version": b"null"}, "openai"),
        ({"/props": EngineRefusedError("403"), "/get_model_info": EngineBusyError("503"), "/api/version": {"version": "1"}}, "ollama"),
        (dict.fromkeys(("/props", "/get_model_info", "/api/version"), EngineRefusedError("401")), "openai"),
    ],
)
@pytest.mark.parametrize("listed", [None, b"<html>", b"", {"data": None}, models("bartowski", None), EngineFaultError("500")])
async def test_else_the_pages_of_one_kind_of_server_tell(pages: dict[str, Any], name: str, listed: Any) -> None:
    got, asked = await found({"/v1/models": listed, **pages})
    assert (got, len(asked)) == (name, 4)


async def test_openai_itself_is_known_by_its_address() -> None:
    async def fetch(path: str, body: bytes | None) -> bytes | None:
        raise AssertionError(path)

    assert (await probe.find(fetch, address.parse("https://api.openai.com/v1"))).name == "openai"


async def test_the_second_round_is_asked_side_by_side() -> None:
    waiting = asyncio.Barrier(3)

    async def fetch(path: str, body: bytes | None) -> bytes | None:
        if path != "/v1/models":
            async with asyncio.timeout(10):
                await waiting.wait()
        return None

    assert (await probe.find(fetch, HERE)).name == "openai"


@pytest.mark.parametrize("error", [EngineRefusedError("401"), EngineBusyError("503"), NOT_THERE])
async def test_a_server_that_refuses_its_list_or_is_not_there_is_not_guessed_at(error: EngineError) -> None:
    with pytest.raises(type(error)):
        await found({"/v1/models": error})


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (openai.server, "openai"),
        (vllm.server, "vllm"),
        (sglang.server, "sglang"),
        (tensorrt_llm.server, "tensorrt-llm"),
        (chat.server, "openai"),
    ],
)
async def test_each_server_is_recognised_before_the_first_ask(make: Callable[[], CompletionServer], name: str) -> None:
    async with make() as server, asking.engine(server.url, model="") as engine:
        assert f":{name}:" in (await engine.ready()).fingerprint


async def test_a_wrong_key_is_told_in_clear_words_and_the_other_pages_are_left_alone() -> None:
    async with vllm.server(key="K1") as server, asking.engine(server.url, api_key="K2") as engine:
        with pytest.raises(EngineRefusedError, match="refused the key"):
            await asking.answer(engine)
        assert [request.path for request in server.others] == ["/v1/models"]


async def test_pages_that_are_forbidden_do_no_harm_to_completions() -> None:
    routes = {path: status(403, {"error": "no"}) for path in ("/props", "/get_model_info", "/api/version")}
    async with CompletionServer(routes=routes) as server, asking.engine(server.url) as engine:
        for _ in range(3):
            assert await asking.answer(engine) == "ok"


@pytest.mark.parametrize("hangs", ["/props", "/get_model_info", "/api/version"])
async def test_a_page_that_does_not_come_tells_nothing(hangs: str) -> None:
    async with CompletionServer(routes={hangs: hold}) as server, asking.engine(server.url, remote={"timeout_ms": 10_000}) as engine:
        assert await asking.answer(engine) == "ok"


async def test_a_page_that_does_not_come_does_not_hide_the_others() -> None:
    routes = {"/props": hold, "/api/version": status(200, {"version": "1"})}
    async with CompletionServer(routes=routes) as server, asking.engine(server.url, remote={"timeout_ms": 10_000}) as engine:
        assert ":ollama:" in (await engine.ready()).fingerprint


async def test_pages_of_endless_depth_tell_nothing() -> None:
    deep = b'{"other":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert await found(dict.fromkeys(("/v1/models", "/props", "/get_model_info", "/api/version"), deep)) == (
        "openai",
        ["/v1/models", "/props", "/get_model_info", "/api/version"],
    )
