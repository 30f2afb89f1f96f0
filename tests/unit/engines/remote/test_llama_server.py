"""llama-server's own form of completions."""

from __future__ import annotations

import asyncio
import json

import pytest

from monkeycode_lsp import prompt
from monkeycode_lsp.domain import Finish, Sampling, Usage
from monkeycode_lsp.engines.remote.dialects.base import Call
from monkeycode_lsp.engines.remote.dialects.llama_server import LlamaServer
from monkeycode_lsp.errors import ContextOverflowError, EngineBusyError, EngineRefusedError
from tests.fakes import llama_server
from tests.servers import CompletionServer, event, status, stream
from tests.unit.engines.remote import asking

OTHERS = ("<PRE-X>", "<SUF-X>", "<MID-X>")
"""Insert tokens that the server knows and we do not."""


def paths(server: CompletionServer) -> list[str]:
    return [request.path for request in server.requests]


async def test_a_known_vocabulary_gets_its_markers_whatever_the_model_is_called() -> None:
    async with (
        llama_server.server(["a", "b"], model="/m/who.gguf", markers=llama_server.markers_of("starcoder2")) as server,
        asking.engine(server.url, api="llama-server", model="") as engine,
    ):
        model = await engine.ready()
        assert model.family is not None
        assert model.family.markers.prefix == "<fim_prefix>"
        assert (model.name, model.context_tokens) == ("who.gguf", 4096)
        assert await asking.answer(engine) == "ab"
        assert paths(server) == ["/completion"]


async def test_a_model_whose_tokens_only_the_server_knows_gets_both_halves() -> None:
    told: list[str] = []
    async with (
        llama_server.server(model="/m/who.gguf", markers=OTHERS) as server,
        asking.engine(server.url, api="llama-server", model="", told=told) as engine,
    ):
        assert (await engine.ready()).family is None
        assert await asking.answer(engine, asking.plain("left", "right", max_tokens=9, stop=("\n",))) == "ok"
        assert server.prompts == ["<PRE-X>left<SUF-X>right<MID-X>"]
        sent = server.requests[0].json
    assert paths(server) == ["/infill"]
    assert (sent["input_prefix"], sent["input_suffix"], sent["prompt"], sent["n_predict"], sent["stop"]) == ("left", "right", "", 9, ["\n"])
    assert not told


async def test_markers_in_the_halves_are_neutral_for_infill_too() -> None:
    async with (
        llama_server.server(model="/m/who.gguf", markers=OTHERS) as server,
        asking.engine(server.url, api="llama-server", model="") as engine,
    ):
        await asking.answer(engine, asking.plain("<|fim_suffix|>", "<|fim_middle|>"))
    sent = server.requests[0].json
    assert "<|fim_suffix|>" not in sent["input_prefix"]
    assert "<|fim_middle|>" not in sent["input_suffix"]


async def test_a_model_without_insert_tokens_falls_back_once_remembers_it_and_says_it_once() -> None:
    told: list[str] = []
    async with (
        llama_server.server(model="/m/smollm2.gguf", markers=(), inserts=()) as server,
        asking.engine(server.url, api="llama-server", model="", told=told) as engine,
    ):
        for _ in range(2):
            assert await asking.answer(engine, asking.plain("left", "right")) == "ok"
        assert server.prompts == ["left", "left"]
    assert paths(server) == ["/infill", "/completion", "/completion"]
    assert len(told) == 1
    assert "cannot fill in the middle" in told[0]


async def test_without_text_after_the_cursor_there_is_nothing_to_insert() -> None:
    async with (
        llama_server.server(model="/m/who.gguf", markers=OTHERS) as server,
        asking.engine(server.url, api="llama-server", model="") as engine,
    ):
        await asking.answer(engine, asking.plain("left", ""))
        assert (paths(server), server.prompts) == (["/completion"], ["left"])


async def test_what_was_reused_comes_with_the_first_text_and_in_the_end() -> None:
    async with llama_server.server(["a", "b"]) as server, asking.engine(server.url, api="llama-server", model="") as engine:
        await asking.chunks(engine, asking.fim("one", ""))
        got = await asking.chunks(engine, asking.fim("one more", ""))
    # `<|fim_prefix|>`, and `one`.
    assert [chunk.usage and chunk.usage.reused for chunk in got] == [4, 4, 4]
    assert got[-1].usage == Usage(reused=4, read=7, generated=2)


async def test_a_document_keeps_its_slot_and_another_gets_another() -> None:
    async with llama_server.server(n_slots=4) as server, asking.engine(server.url, api="llama-server", model="") as engine:
        for session in "abab":
            await asking.answer(engine, asking.fim(session=session))
        one, other, *again = [request.json["id_slot"] for request in server.requests]
    assert again == [one, other]
    assert one != other
    assert {one, other} <= {0, 1, 2, 3}


async def test_a_single_slot_is_not_named() -> None:
    async with llama_server.server(n_slots=1) as server, asking.engine(server.url, api="llama-server", model="") as engine:
        await asking.answer(engine, asking.fim(session="a"))
    assert "id_slot" not in server.requests[0].json


async def test_a_router_is_told_the_model_and_a_loaded_one_is_taken_if_none_is_named() -> None:
    models = ("org/Other-GGUF:Q8_0", "org/Qwen2.5-Coder-GGUF:Q8_0")
    for named, asked in (("", models[1]), (models[0], models[0])):
        async with (
            llama_server.server(models=models, n_ctx=2048) as server,
            asking.engine(server.url, api="llama-server", model=named) as engine,
        ):
            model = await engine.ready()
            assert await asking.answer(engine) == "ok"
        assert (model.name, model.context_tokens) == (asked, 2048)
        assert model.family is not None
        assert server.requests[0].json["model"] == asked


async def test_auto_finds_it_and_then_speaks_its_own_form() -> None:
    async with llama_server.server() as server, asking.engine(server.url, model="") as engine:
        assert await asking.answer(engine) == "ok"
    assert paths(server) == ["/completion"]


@pytest.mark.parametrize("api", ["llama-server", "auto"])
async def test_a_missing_and_a_wrong_key_are_said_as_what_they_are(api: str) -> None:
    async with llama_server.server(key="K1") as server:
        async with asking.engine(server.url, api=api, model="", api_key="K1") as engine:
            assert await asking.answer(engine) == "ok"
        for key, words in (("", "wants a key"), ("K2", "refused the key")):
            async with asking.engine(server.url, api=api, model="", api_key=key) as engine:
                with pytest.raises(EngineRefusedError, match=words) as caught:
                    await engine.ready()
                assert "apiKeyEnv" in caught.value.remedy
        assert len(server.requests) == 1


async def test_while_it_loads_it_is_busy_and_then_it_answers() -> None:
    loaded = asyncio.Event()
    quick = {"retries": 0}
    async with llama_server.server(loaded=loaded) as server:
        async with asking.engine(server.url, api="llama-server", model="", remote=quick) as engine:
            with pytest.raises(EngineBusyError, match="still loading its model"):
                await engine.ready()
        loaded.set()
        async with asking.engine(server.url, api="llama-server", model="") as engine:
            assert await asking.answer(engine) == "ok"


async def test_an_overflow_is_one_and_teaches_the_window() -> None:
    async with llama_server.server(n_ctx=300) as server, asking.engine(server.url, api="llama-server", model="") as engine:
        with pytest.raises(ContextOverflowError) as caught:
            await asking.answer(engine, asking.fim("x" * 400))
    assert caught.value.limit_tokens == 300


async def test_stop_strings_end_the_answer_at_the_server() -> None:
    async with llama_server.server(["a", "b\n", "c"]) as server, asking.engine(server.url, api="llama-server", model="") as engine:
        got = await asking.chunks(engine, asking.fim(stop=("\n",)))
    assert ("".join(chunk.text for chunk in got), got[-1].finish) == ("ab", Finish.STOP)


async def test_an_error_inside_a_success_is_an_error() -> None:
    broken = stream(event({"content": "a", "stop": False}), event({"error": {"code": 500, "message": "x", "type": "server_error"}}))
    async with CompletionServer(broken) as server, asking.engine(server.url, api="llama-server", remote={"retries": 0}) as engine:
        with pytest.raises(Exception, match="failed in the middle"):
            await asking.answer(engine)


async def test_a_server_that_lacks_every_page_is_asked_all_the_same() -> None:
    async with CompletionServer(stream(event({"content": "ok", "stop": True}))) as server:
        async with asking.engine(server.url, api="llama-server", model="org/qwen2.5-coder") as engine:
            assert (await engine.ready()).name == "org/qwen2.5-coder"
            assert await asking.answer(engine) == "ok"
        assert server.requests[0].json["model"] == "org/qwen2.5-coder"


@pytest.mark.parametrize("page", ["[]", "{", '{"tokens": [1, 2]}', '{"total_slots": "many"}'])
async def test_pages_that_cannot_be_read_count_as_absent(page: str) -> None:
    routes = {path: status(200, page) for path in ("/props", "/tokenize")}
    async with CompletionServer(routes=routes) as server, asking.engine(server.url, api="llama-server", model="qwen2.5-coder") as engine:
        model = await engine.ready()
    assert (model.context_tokens, model.family) == (None, prompt.by_name("qwen2.5-coder"))


def read(**fields: object) -> tuple[str, Finish | None, Usage | None]:
    piece = LlamaServer().read(json.dumps(fields).encode())
    return piece.text, piece.finish, piece.usage


def test_the_last_event_has_all_figures() -> None:
    timings = {"cache_n": 5, "prompt_n": 6, "predicted_n": 7}
    assert read(content="", stop=True, stop_type="eos", timings=timings) == ("", Finish.STOP, Usage(reused=5, read=6, generated=7))
    assert read(content="", stop=True, stop_type="limit")[1] is Finish.LENGTH


def test_older_servers_say_it_in_other_words() -> None:
    old = {"content": "", "stop": True, "stopped_eos": False, "stopped_limit": True, "slot_id": 0, "tokens_evaluated": 11}
    assert read(**old, timings={"prompt_n": 6, "predicted_n": 7}) == ("", Finish.LENGTH, Usage(reused=5, read=6, generated=7))
    assert read(content="a", stop=False, slot_id=0, multimodal=False) == ("a", None, None)


def test_everything_that_steers_the_draws_is_sent() -> None:
    sampling = Sampling(temperature=0.5, top_p=0.8, min_p=0.1, repeat_penalty=1.2, seed=3)
    sent = json.loads(LlamaServer().body(Call("a", sampling=sampling, stop=tuple("123456"))))
    assert {name: sent[name] for name in ("temperature", "top_p", "min_p", "repeat_penalty", "seed")} == {
        "temperature": 0.5,
        "top_p": 0.8,
        "min_p": 0.1,
        "repeat_penalty": 1.2,
        "seed": 3,
    }
    assert sent["stop"] == list("123456")
    assert "seed" not in json.loads(LlamaServer().body(Call("a")))


def test_the_last_event_need_not_repeat_the_prompt_and_a_closed_socket_is_noticed() -> None:
    sent = json.loads(LlamaServer().body(Call("a")))
    assert (sent["return_progress"], sent["cache_prompt"], sent["stream"]) == (True, True, True)
    assert "prompt" not in sent["response_fields"]


@pytest.mark.parametrize("odd", [-5, 50_000_000, 10**18, 10**30, "many", [], None])
async def test_slots_and_windows_that_no_server_has_are_not_told(odd: object) -> None:
    routes = {"/props": status(200, {"model_path": "/m/who.gguf", "total_slots": odd, "default_generation_settings": {"n_ctx": odd}})}
    async with CompletionServer(routes=routes) as server, asking.engine(server.url, api="llama-server", model="") as engine:
        model = await engine.ready()
    assert (model.name, model.context_tokens) == ("who.gguf", None)


@pytest.mark.parametrize("path", ["/props", "/tokenize", "/v1/models"])
async def test_a_page_of_endless_depth_is_no_page(path: str) -> None:
    deep = b'{"role":"router","other":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    routes = {"/props": status(200, {"role": "router"}), path: status(200, deep)}
    async with CompletionServer(routes=routes) as server, asking.engine(server.url, api="llama-server", model="") as engine:
        assert (await engine.ready()).family is None


async def test_a_router_is_asked_for_a_model_that_writes() -> None:
    cards = [
        {"id": 5},
        {"id": "bge-m3", "status": {"value": "loaded"}},
        {"id": "who", "status": {"value": "loaded"}},
        {"id": "starcoder2-3b", "status": ["odd"]},
    ]
    for listed, name in ((cards, "who"), (cards[3:], "starcoder2-3b"), ([*cards[:2], cards[3]], "starcoder2-3b")):
        routes = {"/props": status(200, {"role": "router"}), "/v1/models": status(200, {"data": listed})}
        async with CompletionServer(routes=routes) as server, asking.engine(server.url, api="llama-server", model="") as engine:
            assert (await engine.ready()).name == name


@pytest.mark.parametrize("odd", [-3, 10**30, 1e300, "many", [], {}])
def test_figures_that_cannot_be_are_not_told(odd: object) -> None:
    read = LlamaServer().read
    progress = {"content": "", "prompt_progress": {"total": odd, "cache": odd}}
    assert read(json.dumps(progress).encode()).usage == Usage(reused=0, read=0)
    timings = {"content": "x", "stop": True, "timings": {"cache_n": odd, "prompt_n": odd, "predicted_n": odd}, "tokens_evaluated": odd}
    assert read(json.dumps(timings).encode()).usage == Usage()
