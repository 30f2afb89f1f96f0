"""Servers that are replaced by others at the same address: nothing of what was known is believed longer than it must."""

from __future__ import annotations

import pytest

from monkeycode_lsp import prompt
from monkeycode_lsp.errors import EngineBusyError, EngineError, EngineUnavailableError, StreamBrokenError
from tests.fakes import llama_server, openai, vllm
from tests.servers import CompletionServer, Exchange, reply, status, stream, unused_port
from tests.unit.engines.remote import asking


async def test_a_server_that_comes_back_with_another_model_is_asked_who_it_is() -> None:
    port = unused_port()
    async with asking.engine(f"http://127.0.0.1:{port}", model="") as engine:
        async with vllm.server(model="Qwen/Qwen2.5-Coder-7B", port=port):
            qwen = await engine.ready()
            assert await asking.answer(engine) == "a + b"
        with pytest.raises((EngineUnavailableError, StreamBrokenError)):
            await asking.answer(engine)
        async with vllm.server(model="bigcode/starcoder2-7b", port=port) as server:
            starcoder = await engine.ready()
            assert starcoder.family == prompt.by_name("starcoder2")
            assert starcoder.fingerprint != qwen.fingerprint
            assert await asking.answer(engine) == "a + b"
            assert server.requests[-1].json["model"] == "bigcode/starcoder2-7b"


async def test_a_model_that_the_server_does_not_have_any_more_is_asked_for_anew() -> None:
    names = ["Qwen/Qwen2.5-Coder-7B"]

    async def models(exchange: Exchange) -> None:
        await exchange.respond(200, {"data": [{"id": name, "owned_by": "vllm"} for name in names]})

    async def script(exchange: Exchange) -> None:
        if exchange.request.json["model"] in names:
            await reply("ok")(exchange)
        else:
            await exchange.respond(404, {"error": {"message": "The model `x` does not exist.", "code": 404}})

    async with CompletionServer(script, routes={"/v1/models": models}) as server, asking.engine(server.url, model="") as engine:
        asked = asking.fim(model=(await engine.ready()).fingerprint)
        assert await asking.answer(engine, asked) == "ok"
        names[:] = ["bigcode/starcoder2-7b"]
        with pytest.raises(EngineBusyError):  # which is not told to the user
            await asking.answer(engine, asked)
        assert {request.json["model"] for request in server.requests} == {"Qwen/Qwen2.5-Coder-7B"}  # no prompt of one goes to the other
        assert (await engine.ready()).family == prompt.by_name("starcoder2")
        assert await asking.answer(engine) == "ok"


async def test_a_server_of_another_kind_at_the_same_address_is_found_out() -> None:
    port = unused_port()
    async with asking.engine(f"http://127.0.0.1:{port}", model="") as engine:
        async with llama_server.server(port=port):
            assert (await engine.ready()).fingerprint.startswith("remote:llama-server:")
        async with vllm.server(model="Qwen/Qwen2.5-Coder-7B", port=port):
            for _ in range(3):
                try:
                    assert await asking.answer(engine) == "a + b"
                except EngineError:
                    continue
            assert (await engine.ready()).fingerprint.startswith("remote:vllm:")
            assert await asking.answer(engine) == "a + b"


async def test_a_route_that_is_missing_for_a_moment_does_not_make_a_server_one_that_only_chats() -> None:
    told: list[str] = []
    scripts = [reply("one"), status(404, b"default backend - 404"), reply("two"), reply("three")]
    async with CompletionServer(*scripts) as server, asking.engine(server.url, told=told) as engine:
        assert await asking.answer(engine) == "one"
        with pytest.raises(EngineError):
            await asking.answer(engine)
        assert [await asking.answer(engine), await asking.answer(engine)] == ["two", "three"]
        assert {request.path for request in server.requests} == {"/v1/completions"}
    assert not told


async def test_a_server_that_never_says_anything_is_asked_plainly_once_and_not_at_every_key() -> None:
    async with CompletionServer(stream()) as server, asking.engine(server.url, remote={"retries": 0}) as engine:
        for _ in range(5):
            with pytest.raises(EngineError):
                await asking.answer(engine)
        assert [request.json.get("stream") for request in server.requests].count(None) == 1


async def test_what_is_certain_is_not_asked_again() -> None:
    async with openai.server() as server, asking.engine(server.url, model="") as engine:
        for _ in range(4):
            await engine.ready()
            await asking.answer(engine)
        assert [request.path for request in server.others].count("/v1/models") == 1
