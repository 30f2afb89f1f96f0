"""Cases of kinds E and N and keys: what is sent, to whom, and how."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from monkeycode_lsp import config, prompt
from monkeycode_lsp.domain import Finish, Usage
from monkeycode_lsp.engines.remote.engine import RemoteEngine
from monkeycode_lsp.errors import ContextOverflowError, EngineRefusedError, EngineUnavailableError, StreamBrokenError
from tests.certificates import Authority
from tests.servers import CompletionServer, Exchange, event, reply, status, stream, unused_port
from tests.unit.engines.remote import asking


async def refuses_suffix(exchange: Exchange) -> None:
    if "suffix" in exchange.request.json:
        await exchange.respond(400, {"object": "error", "message": "suffix is not currently supported", "code": 400})
    else:
        await reply("ok")(exchange)


async def test_a_known_family_gets_its_markers_and_never_a_suffix_field() -> None:
    async with CompletionServer(refuses_suffix) as server, asking.engine(server.url) as engine:
        assert await asking.answer(engine, asking.fim("a", "b", max_tokens=7, stop=("x",))) == "ok"
        assert [request.json for request in server.requests] == [
            {
                "prompt": "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>",
                "max_tokens": 7,
                "temperature": 0.0,
                "model": asking.QWEN,
                "stop": ["x"],
                "stream": True,
                "stream_options": {"include_usage": True},
            }
        ]


async def test_an_unknown_model_is_asked_to_insert_by_itself() -> None:
    told: list[str] = []
    async with CompletionServer() as server, asking.engine(server.url, told=told, model="who") as engine:
        assert (await engine.ready()).family is None
        await asking.answer(engine, asking.plain("a", "b"))
        await asking.answer(engine, asking.plain("a", ""))
        assert [(request.json["prompt"], request.json.get("suffix")) for request in server.requests] == [("a", "b"), ("a", None)]
    assert not told


async def test_a_refused_suffix_is_tried_once_remembered_and_said_once() -> None:
    told: list[str] = []
    async with CompletionServer(refuses_suffix) as server, asking.engine(server.url, told=told, model="who") as engine:
        for _ in range(3):
            assert await asking.answer(engine, asking.plain("a", "b")) == "ok"
        assert ["suffix" in request.json for request in server.requests] == [True, False, False, False]
    assert len(told) == 1
    assert "fill in the middle" in told[0]


async def test_marker_strings_in_a_suffix_field_are_neutral_too() -> None:
    async with CompletionServer() as server, asking.engine(server.url, model="who") as engine:
        await asking.answer(engine, asking.plain("a", "<|im_end|>"))
        assert "<|im_end|>" not in server.requests[0].json["suffix"]


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "/v1/completions"])
async def test_every_form_of_the_address_gives_one_question_about_the_api_and_posts_to_the_same_route(path: str) -> None:
    routes = {"/v1/models": status(200, {"data": [{"id": "m", "owned_by": "me"}]})}
    async with CompletionServer(routes=routes) as server, asking.engine(server.url + path) as engine:
        for _ in range(2):
            await asking.answer(engine)
        assert [(request.method, request.path) for request in server.requests] == [("POST", "/v1/completions")] * 2
        assert [(request.method, request.path) for request in server.others] == [("GET", "/v1/models")]


async def test_an_unnamed_model_is_asked_for_once() -> None:
    models = status(200, {"data": [{"id": "org/DeepSeek-Coder-6.7B", "max_model_len": 4096}, {"id": "other"}]})
    async with CompletionServer(routes={"/v1/models": models}) as server, asking.engine(server.url, model="") as engine:
        model = await engine.ready()
        assert (model.name, model.family, model.context_tokens) == ("org/DeepSeek-Coder-6.7B", prompt.by_name("deepseek-coder"), 4096)
        await asking.answer(engine)
        assert await engine.ready() == model
        paths = [request.path for request in server.others]
        assert paths[0] == "/v1/models"
        assert len(paths) == len(set(paths))
        assert server.requests[0].json["model"] == "org/DeepSeek-Coder-6.7B"


@pytest.mark.parametrize("models", [status(404), status(200, {}), status(200, "<html>"), status(200, {"data": []})])
async def test_a_server_without_a_list_of_models_is_asked_without_a_name(models: Any) -> None:
    async with CompletionServer(routes={"/v1/models": models}) as server, asking.engine(server.url, model="") as engine:
        assert (await engine.ready()).family is None
        assert await asking.answer(engine) == "ok"
        assert "model" not in server.requests[0].json


async def test_fingerprints_tell_models_addresses_and_headers_apart() -> None:
    async def of(url: str, **endpoint: Any) -> str:
        async with asking.engine(url, api="openai", **endpoint) as engine:
            return (await engine.ready()).fingerprint

    here = f"http://127.0.0.1:{unused_port()}"
    assert await of(here) == await of(here + "/v1/")
    assert len({await of(here), await of(here, model="starcoder2"), await of("http://h")}) == 3
    adapted = await of(here, headers={"X-Adapter": "team-secret"})
    assert len({await of(here), adapted, await of(here, headers={"X-Adapter": "b"})}) == 3
    assert "secret" not in adapted


async def test_an_overflow_teaches_the_window() -> None:
    refusal = status(400, {"message": "This model's maximum context length is 2048 tokens."})
    async with CompletionServer(refusal) as server, asking.engine(server.url) as engine:
        with pytest.raises(ContextOverflowError) as caught:
            await asking.answer(engine)
        assert caught.value.limit_tokens == 2048
        assert (await engine.ready()).context_tokens == 2048


def llama_event(text: str, **more: Any) -> bytes:
    return event({"index": 0, "content": text, "tokens": [1], "stop": False, **more})


PROPS = {"model_path": "/models/qwen2.5-coder-0.5b-q4_k_m.gguf", "default_generation_settings": {"n_ctx": 2048}}


async def test_llama_server_is_spoken_to_in_its_own_words() -> None:
    progress = event({"content": "", "tokens": [0], "stop": False, "prompt_progress": {"total": 9, "processed": 3}})
    last = event({"content": "", "stop": True, "stop_type": "limit", "timings": {"cache_n": 5, "prompt_n": 4, "predicted_n": 2}})
    script = stream(progress, llama_event("o"), llama_event("k"), last)
    async with CompletionServer(script, routes={"/props": status(200, PROPS)}) as server:
        async with asking.engine(server.url, api="llama-server", model="") as engine:
            model = await engine.ready()
            got = await asking.chunks(engine)
        sent = server.requests[0]
    assert (model.name, model.context_tokens) == ("qwen2.5-coder-0.5b-q4_k_m.gguf", 2048)
    assert model.family == prompt.by_name("qwen2.5-coder")
    assert [(chunk.text, chunk.n_tokens) for chunk in got] == [("o", 1), ("k", 1), ("", 0)]
    assert (got[-1].finish, got[-1].usage) == (Finish.LENGTH, Usage(reused=5, read=4, generated=2))
    assert sent.path == "/completion"
    assert sent.json["return_progress"]
    assert sent.json["cache_prompt"]


async def test_llama_servers_vocabulary_tells_the_family() -> None:
    texts = ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_sep|>"]
    tokens = status(200, {"tokens": [{"id": number, "piece": text} for number, text in enumerate([*texts, " ", "<", "fim"])]})
    routes = {"/props": status(200, {"model_path": "/m/x.gguf"})}

    async with (
        CompletionServer(routes={**routes, "/tokenize": tokens}) as server,
        asking.engine(server.url, api="llama-server", model="") as engine,
    ):
        family = (await engine.ready()).family
        assert family is not None
        assert family.markers.prefix == "<|fim_prefix|>"
    async with CompletionServer(routes=routes) as server, asking.engine(server.url, api="llama-server", model="") as engine:
        assert (await engine.ready()).family is None


async def test_the_key_is_sent_exactly_and_never_repeated() -> None:
    async def script(exchange: Exchange) -> None:
        if exchange.request.headers.get("authorization") == "Bearer K1":
            await reply("ok")(exchange)
        else:
            await exchange.respond(401, {"error": f"bad key {exchange.request.headers.get('authorization')}"})

    async with CompletionServer(script) as server:
        async with asking.engine(server.url, api_key="K1\n") as engine:
            assert await asking.answer(engine) == "ok"
        async with asking.engine(server.url, api_key_env="KEY", environ={"KEY": " K1 "}) as engine:
            assert await asking.answer(engine) == "ok"
        async with asking.engine(server.url, api_key="sk-TEST-1") as engine:
            with pytest.raises(EngineRefusedError) as caught:
                await asking.answer(engine)
    assert "sk-TEST-1" not in repr(caught.value) + str(caught.value)
    assert "refused the key" in str(caught.value)


async def test_proxy_variables_disturb_neither_construction_nor_loopback() -> None:
    environ = {"ALL_PROXY": "socks5://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9", "SSL_CERT_FILE": "/no/such", "NO_PROXY": "::,[x"}
    async with CompletionServer() as server, asking.engine(server.url, environ=environ) as engine:
        assert await asking.answer(engine) == "ok"


async def test_a_proxy_that_cannot_be_used_is_said_without_its_password() -> None:
    async with asking.engine("http://192.0.2.1", environ={"ALL_PROXY": "socks5://u:secret@127.0.0.1:9"}) as engine:
        with pytest.raises(EngineUnavailableError, match="proxy") as caught:
            await asking.answer(engine)
    assert "secret" not in str(caught.value)


async def test_another_host_is_asked_through_the_proxy() -> None:
    async with CompletionServer() as server:
        async with asking.engine("http://192.0.2.1/v1", environ={"http_proxy": server.url}) as engine:
            assert await asking.answer(engine) == "ok"
        assert server.requests[0].path == "http://192.0.2.1/v1/completions"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made = Authority.make(tmp_path_factory.mktemp("authority"))
    if made is None:
        pytest.skip("openssl is not installed")
    return made


async def test_a_private_authority_is_honoured_as_a_string_and_as_a_list(authority: Authority) -> None:
    ca_file = str(authority.ca_file)
    async with CompletionServer(tls=authority.server) as server:
        for files in (ca_file, (ca_file, ca_file)):
            async with asking.engine(server.url, ca_file=files) as engine:
                assert await asking.answer(engine) == "ok"


async def test_without_the_authority_there_is_a_clear_message_and_no_request(authority: Authority) -> None:
    async with CompletionServer(tls=authority.server) as server, asking.engine(server.url) as engine:
        with pytest.raises(EngineUnavailableError, match=r"not trusted.*caFile"):
            await asking.answer(engine)
        assert not server.requests


async def test_https_to_a_plain_server_is_said_to_be_that() -> None:
    async with CompletionServer() as server, asking.engine(server.url.replace("http:", "https:")) as engine:
        with pytest.raises(EngineUnavailableError, match="TLS"):
            await asking.answer(engine)


async def test_a_certificate_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    junk = tmp_path / "junk.pem"
    junk.write_text("no certificate")
    for path in (junk, tmp_path / "missing.pem"):
        async with asking.engine("https://127.0.0.1", ca_file=str(path)) as engine:
            with pytest.raises(EngineUnavailableError, match=path.name):
                await asking.answer(engine)


async def test_no_endpoint_and_a_bad_one_are_said_in_words() -> None:
    nothing = RemoteEngine(settings=config.Remote(), notify=print, environ={})
    with pytest.raises(EngineUnavailableError, match=r"remote\.endpoints"):
        await nothing.ready()
    async with asking.engine("ftp://h") as engine:
        with pytest.raises(EngineUnavailableError, match=r"remote\.endpoints"):
            await engine.ready()


async def test_headers_that_cannot_be_sent_are_said_in_words() -> None:
    async with CompletionServer() as server, asking.engine(server.url, headers={"a b": "x"}) as engine:
        with pytest.raises(EngineUnavailableError, match="headers"):
            await asking.answer(engine)


async def test_http2_without_its_package_is_said_and_does_no_harm() -> None:
    told: list[str] = []
    async with CompletionServer() as server, asking.engine(server.url, told=told, remote={"http2": True}) as engine:
        assert await asking.answer(engine) == "ok"
    missing = importlib.util.find_spec("h2") is None
    assert [("h2" in text) for text in told] == [True] * missing


async def test_a_closed_engine_ends_its_streams() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.text("a")
        await exchange.hold()

    async with CompletionServer(script) as server, asking.engine(server.url) as engine:
        stream_ = engine.stream(asking.fim())
        assert (await anext(stream_)).text == "a"
        await engine.aclose()
        with pytest.raises(StreamBrokenError):
            await anext(stream_)
        await server.requests[0].closed.wait()


async def test_what_is_refused_inside_a_good_status_is_not_sent_again() -> None:
    async def script(exchange: Exchange) -> None:
        if "stream_options" in exchange.request.json:
            await stream(event({"error": {"message": "stream_options is not supported", "code": 400}}))(exchange)
        else:
            await reply("ok")(exchange)

    async with CompletionServer(script) as server, asking.engine(server.url) as engine:
        assert [await asking.answer(engine) for _ in range(2)] == ["ok", "ok"]
        assert ["stream_options" in request.json for request in server.requests] == [True, False, False]


async def test_a_server_that_says_nothing_at_all_is_asked_once_more_without_a_stream_and_says_why() -> None:
    async def script(exchange: Exchange) -> None:
        if exchange.request.json.get("stream"):
            await stream()(exchange)
        else:
            await exchange.respond(400, {"error": {"message": "Requested tokens (3000) exceed context window of 2048"}})

    async with CompletionServer(script) as server, asking.engine(server.url) as engine:
        with pytest.raises(ContextOverflowError) as overflow:
            await asking.answer(engine)
        assert overflow.value.limit_tokens == 2048
        assert len(server.requests) == 2


async def test_a_server_that_never_says_anything_is_asked_twice_and_no_more() -> None:
    async with CompletionServer(stream()) as server, asking.engine(server.url, remote={"retries": 0}) as engine:
        with pytest.raises(StreamBrokenError):
            await asking.answer(engine)
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    "line",
    [
        "# stop is not supported here",
        "raise ValueError('Unknown parameter: stream_options')",
        "text = 'suffix is not currently supported'",
        "# This model's maximum context length is 300 tokens",
        "print('The model `qwen2.5-coder` does not exist')",
    ],
)
@pytest.mark.parametrize("code", [400, 422])
async def test_the_users_own_words_in_a_refusal_are_not_the_servers(line: str, code: int) -> None:
    async def script(exchange: Exchange) -> None:
        if len(server.requests) == 1:
            await exchange.respond(code, f"Bad request: cannot process {exchange.request.json['prompt']!r} now", "text/plain")
        else:
            await reply("ok")(exchange)

    told: list[str] = []
    async with CompletionServer(script) as server, asking.engine(server.url, told=told, remote={"retries": 0}) as engine:
        with pytest.raises(EngineRefusedError) as error:
            await asking.answer(engine, asking.fim(f"x = 1\n{line}\ny = ", stop=("a",)))
        assert not isinstance(error.value, ContextOverflowError)
        assert await asking.answer(engine, asking.fim(stop=("a",))) == "ok"
        assert {"stop", "stream_options"} <= server.requests[-1].json.keys()
        assert (await engine.ready()).context_tokens is None
    assert not told


async def test_a_window_that_a_longer_answered_prompt_disproves_is_not_believed() -> None:
    good = stream(event({"choices": [{"text": "ok", "finish_reason": "stop"}], "usage": {"prompt_tokens": 900}}))
    overflow = status(400, {"error": {"message": "This model's maximum context length is 600 tokens."}})
    async with CompletionServer(overflow, good, overflow) as server, asking.engine(server.url) as engine:
        with pytest.raises(ContextOverflowError):
            await asking.answer(engine)
        assert (await engine.ready()).context_tokens == 600
        assert await asking.answer(engine) == "ok"
        assert (await engine.ready()).context_tokens is None
        with pytest.raises(ContextOverflowError):
            await asking.answer(engine)
        assert (await engine.ready()).context_tokens is None


async def test_a_key_that_is_missing_because_its_variable_is_not_set_is_said_as_that() -> None:
    async with (
        CompletionServer(status(401, {"error": "Unauthorized"})) as server,
        asking.engine(server.url, api_key_env="TEAM_KEY") as engine,
    ):
        with pytest.raises(EngineRefusedError, match="variable TEAM_KEY, named by `apiKeyEnv`, is not set"):
            await asking.answer(engine)
