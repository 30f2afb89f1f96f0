"""Ollama's own form of completions."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from monkeycode_lsp import prompt
from monkeycode_lsp.domain import Finish, Sampling, Usage
from monkeycode_lsp.engines.remote.dialects.base import Call
from monkeycode_lsp.engines.remote.dialects.ollama import Ollama
from monkeycode_lsp.engines.remote.engine import RemoteEngine
from monkeycode_lsp.errors import ContextOverflowError, EngineBusyError, EngineRefusedError, EngineUnavailableError
from tests.fakes import ollama
from tests.fakes.ollama import Model
from tests.fakes.ollama import Ollama as Server
from tests.servers import CompletionServer, Exchange, Request, status
from tests.unit.engines.remote import asking

QWEN = "qwen2.5-coder:1.5b"
CHAT = Model(insert="")
STRANGE = Model(insert="<A>{{ .Suffix }}<B>{{ .Prompt }}<C>")


def ask(server: CompletionServer, **endpoint: Any) -> Any:
    return asking.engine(server.url, **{"api": "ollama", "model": "", **endpoint})


async def test_a_prompt_with_markers_is_never_put_into_a_template() -> None:
    async with ollama.server(["a", "b"]) as server, ask(server, model=QWEN) as engine:
        model = await engine.ready()
        assert (model.name, model.family) == (QWEN, prompt.by_name("qwen2.5-coder"))
        assert await asking.answer(engine, asking.fim("left", "right", max_tokens=7, stop=("\n",))) == "ab"
        assert server.prompts == ["<|fim_prefix|>left<|fim_suffix|>right<|fim_middle|>"]
    sent = server.requests[0].json
    assert (sent["raw"], sent["model"]) == (True, QWEN)
    assert "suffix" not in sent
    assert (sent["options"]["num_predict"], sent["options"]["stop"]) == (7, ["\n"])


async def test_halves_without_markers_are_put_together_by_the_models_own_template() -> None:
    told: list[str] = []
    async with ollama.server(models={"who": STRANGE}) as server, ask(server, told=told) as engine:
        assert (await engine.ready()).family is None
        assert await asking.answer(engine, asking.plain("left", "right")) == "ok"
        assert server.prompts == ["<A>right<B>left<C>"]
        assert not server.requests[0].json["raw"]
    assert not told


@pytest.mark.parametrize("tells", [True, False])
async def test_a_model_that_cannot_insert_gets_the_text_before_the_cursor_and_no_chat_around_it(*, tells: bool) -> None:
    told: list[str] = []
    models = {"llama3.2": Model(insert="", tells=tells)}
    async with ollama.server(models=models) as server, ask(server, told=told) as engine:
        for _ in range(2):
            assert await asking.answer(engine, asking.plain("left", "right")) == "ok"
        assert server.prompts == ["left", "left"]
        assert len(server.requests) == 2
    assert len(told) == 1
    assert "cannot fill in the middle" in told[0]


async def test_a_refusal_to_insert_is_an_answer_that_is_remembered() -> None:
    """The list of abilities may be wrong, or be missing together with the template."""
    told: list[str] = []
    async with ollama.server(models={"who": Model(insert="")}) as server:
        shown = status(200, {"capabilities": ["completion", "insert"]})
        server._routes["/api/show"] = shown
        async with ask(server, told=told) as engine:
            for _ in range(2):
                assert await asking.answer(engine, asking.plain("left", "right")) == "ok"
    assert ["suffix" in request.json for request in server.requests] == [True, False, False]
    assert len(told) == 1


@pytest.mark.parametrize(
    ("name", "model", "family"),
    [
        ("mine", Model(), "qwen2.5-coder"),
        ("mine", Model(family="gemma"), "codegemma"),
        ("granite4:3b", Model(family="granitehybrid"), "granite-4"),
        ("codestral", Model(insert="[SUFFIX]{{ .Suffix }}[PREFIX]{{ .Prompt }}", family="llama"), "codestral"),
        ("codellama:7b-code", Model(insert="<PRE> {{ .Prompt }} <SUF>{{ .Suffix }} <MID>", family="llama"), "codellama"),
        ("qwen2.5-coder:7b", CHAT, "qwen2.5-coder"),
        ("hf.co/org/Starcoder2-3B-GGUF:Q4_K_M", CHAT, "starcoder2"),
        ("llama3.2", CHAT, ""),
        ("who", STRANGE, ""),
        ("who", Model(family="unheard-of"), ""),
    ],
)
async def test_the_family_is_found_by_the_template_and_by_the_name_if_that_says_nothing(name: str, model: Model, family: str) -> None:
    async with ollama.server(models={name: model}) as server, ask(server, model=name) as engine:
        found = (await engine.ready()).family
    assert (found.name if found else "") == family


async def test_the_name_of_what_a_model_was_made_of_counts() -> None:
    shown = {"template": "{{ .Prompt }}", "details": {"parent_model": "deepseek-coder:1.3b-base"}, "model_info": None}
    for page in (shown, shown | {"details": {}, "model_info": {"general.basename": "DeepSeek-Coder"}}):
        server = ollama.server(models={"mine": Model()})
        server._routes["/api/show"] = status(200, {name: value for name, value in page.items() if value is not None})
        async with server, ask(server) as engine:
            assert (await engine.ready()).family == prompt.by_name("deepseek-coder")


async def test_without_a_name_a_model_that_fills_in_is_taken_and_best_one_that_is_loaded() -> None:
    soon = (datetime.now(UTC) + timedelta(minutes=4)).isoformat()
    models = {"llama3.2": CHAT, "qwen2.5-coder:3b": Model(), "qwen2.5-coder:7b": Model()}
    for running, taken in (
        ({}, "qwen2.5-coder:3b"),
        ({"llama3.2": soon}, "qwen2.5-coder:3b"),
        ({"qwen2.5-coder:7b": soon}, "qwen2.5-coder:7b"),
    ):
        async with ollama.server(models=models, running=running) as server, ask(server) as engine:
            assert (await engine.ready()).name == taken


async def test_if_none_is_known_to_fill_in_the_first_will_do() -> None:
    async with ollama.server(models={"llama3.2": CHAT, "who": STRANGE}) as server, ask(server) as engine:
        assert (await engine.ready()).name == "llama3.2:latest"


async def test_no_models_at_all_are_said_with_the_command_that_gets_one() -> None:
    async with ollama.server(models={}) as server, ask(server) as engine:
        with pytest.raises(EngineRefusedError, match="no model that could complete code") as caught:
            await engine.ready()
    assert "ollama pull qwen2.5-coder" in caught.value.remedy
    assert not server.requests


async def test_a_model_that_was_not_pulled_is_named_with_the_command_that_gets_it() -> None:
    async with ollama.server() as server, ask(server, model="qwen2.5-coder:32b") as engine:
        with pytest.raises(EngineRefusedError, match=r"no model 'qwen2.5-coder:32b'") as caught:
            await engine.ready()
    assert "`ollama pull qwen2.5-coder:32b`" in caught.value.remedy
    assert not server.requests


async def test_a_name_without_a_tag_is_the_latest() -> None:
    async with ollama.server(models={"mine:latest": Model()}) as server, ask(server, model="mine") as engine:
        assert await asking.answer(engine) == "ok"


async def test_a_server_that_shows_nothing_is_asked_all_the_same() -> None:
    async def said(exchange: Exchange) -> None:
        await exchange.head(200, "application/x-ndjson")
        await exchange.send(b'{"response":"ok","done":true}\n')
        await exchange.end()

    async with CompletionServer(said) as server, ask(server, model=QWEN) as engine:
        assert (await engine.ready()).family == prompt.by_name("qwen2.5-coder")
        assert await asking.answer(engine) == "ok"


@pytest.mark.parametrize("page", ["[]", "{", '{"models": [{"name": 1}]}', '{"models": null}'])
async def test_pages_that_cannot_be_read_count_as_absent(page: str) -> None:
    routes = {path: status(200, page) for path in ("/api/ps", "/api/tags", "/api/show")}
    async with CompletionServer(routes=routes) as server, ask(server, model=QWEN) as engine:
        assert (await engine.ready()).family == prompt.by_name("qwen2.5-coder")


async def test_the_window_is_what_it_really_has() -> None:
    soon = (datetime.now(UTC) + timedelta(minutes=4)).isoformat()
    for model, running, window in (
        (Model(), {}, 4096),
        (Model(parameters='stop "<x>"\nnum_ctx                        8192\n'), {}, 8192),
        (Model(trained=2048), {}, 2048),
        (Model(), {"m": soon}, 16_384),
    ):
        async with ollama.server(models={"m": model}, running=running, window=16_384) as server, ask(server, model="m") as engine:
            assert (await engine.ready()).context_tokens == window


async def test_asking_never_loads_a_model_anew() -> None:
    async with ollama.server() as server, ask(server) as engine:
        for _ in range(3):
            await asking.answer(engine)
        assert server.loads == [QWEN]
    sent = server.requests[0].json
    assert "num_ctx" not in sent["options"]
    assert "shift" not in sent


async def load(server: Server, number: int = 0) -> Request:
    """The request that loads the model and asks for nothing else, once it is there."""
    async with asyncio.timeout(20):
        while len(loads := [request for request in server.others if request.path == "/api/generate"]) <= number:  # noqa: ASYNC110 - a list of the server's
            await asyncio.sleep(0.01)
    return loads[number]


async def answered(engine: RemoteEngine) -> str:
    """What it says as soon as it rests no more after its failures."""
    async with asyncio.timeout(20):
        while True:
            try:
                return await asking.answer(engine)
            except (EngineUnavailableError, EngineBusyError):
                await asyncio.sleep(0.01)


async def test_a_model_that_loads_longer_than_anybody_waits_is_loaded_all_the_same() -> None:
    """Ollama gives a load up when the one who asked for it goes, and each key press is somebody who goes."""
    async with ollama.server() as server, ask(server, remote={"timeout_ms": 500, "retries": 0}) as engine:
        server.may_load.clear()
        await engine.ready()
        waits = await load(server)
        with pytest.raises(EngineBusyError, match="still loading its model"):
            await asking.answer(engine)
        assert not waits.closed.is_set()
        server.may_load.set()
        assert await answered(engine) == "ok"
        assert server.loads == [QWEN]


async def test_a_model_that_was_unloaded_in_a_pause_is_loaded_again_whoever_waits() -> None:
    async with ollama.server() as server, ask(server, remote={"timeout_ms": 1_500, "retries": 0}) as engine:
        assert await asking.answer(engine) == "ok"
        server.unload()
        server.may_load.clear()
        with pytest.raises(EngineUnavailableError, match="did not begin to answer"):
            await asking.answer(engine)
        waits = await load(server, 1)
        server.may_load.set()
        assert await answered(engine) == "ok"
        assert not waits.closed.is_set()


async def test_a_load_ends_with_the_engine() -> None:
    async with ollama.server() as server:
        server.may_load.clear()
        async with ask(server) as engine:
            await engine.ready()
            waits = await load(server)
        async with asyncio.timeout(20):
            await waits.closed.wait()


async def test_a_prompt_that_is_too_long_is_refused_and_never_cut() -> None:
    async with ollama.server(window=300) as server, ask(server) as engine:
        with pytest.raises(ContextOverflowError) as caught:
            await asking.answer(engine, asking.fim("x" * 400))
        assert caught.value.limit_tokens == 300
        assert not server.prompts


async def test_a_model_stays_loaded_over_a_pause_but_not_shorter_than_its_owner_wants() -> None:
    now = datetime.now(UTC)
    for until, sent in ((None, "30m"), (now + timedelta(minutes=4), "30m"), (now + timedelta(days=100_000), None)):
        running = {QWEN: until.isoformat()} if until else {}
        async with ollama.server(running=running) as server, ask(server) as engine:
            await asking.answer(engine)
        assert server.requests[0].json.get("keep_alive") == sent


async def test_thinking_is_off() -> None:
    async with ollama.server(models={"qwen3-coder": Model(thinks=True)}) as server, ask(server) as engine:
        await asking.answer(engine)
    assert server.requests[0].json["think"] is False


async def test_a_field_that_is_refused_by_name_is_left_out_from_then_on() -> None:
    async with ollama.server() as server:
        refusing = server._scripts

        async def script(exchange: Exchange) -> None:
            if "think" in exchange.request.json:
                await exchange.respond(400, {"error": "unknown field: think"})
            else:
                await refusing[0](exchange)

        server._scripts = (script,)
        async with ask(server) as engine:
            for _ in range(2):
                assert await asking.answer(engine) == "ok"
    assert ["think" in request.json for request in server.requests] == [True, False, False]


async def test_stop_strings_and_limits_end_the_answer() -> None:
    async with ollama.server(["a", "b\n", "c"]) as server, ask(server) as engine:
        got = await asking.chunks(engine, asking.fim(stop=("\n",)))
        assert ("".join(chunk.text for chunk in got), got[-1].finish) == ("ab", Finish.STOP)
        got = await asking.chunks(engine, asking.fim(max_tokens=2))
        assert ("".join(chunk.text for chunk in got), got[-1].finish, got[-1].usage) == ("ab\n", Finish.LENGTH, Usage(generated=2))


async def test_letters_beyond_ascii_and_escapes_come_through() -> None:
    async with ollama.server(["<é>", "\u2028", "\U0001f600 & "]) as server, ask(server) as engine:
        assert await asking.answer(engine) == "<é>\u2028\U0001f600 & "


async def test_an_error_in_the_stream_is_an_error() -> None:
    async def script(exchange: Exchange) -> None:
        await exchange.head(200, "application/x-ndjson")
        await exchange.send(b'{"response":"a","done":false}\n{"error":"model runner has unexpectedly stopped"}\n')
        await exchange.end()

    async with CompletionServer(script) as server, ask(server, model=QWEN, remote={"retries": 0}) as engine:
        with pytest.raises(EngineRefusedError, match="reported an error"):
            await asking.answer(engine)


async def test_auto_finds_it_and_then_speaks_its_own_form() -> None:
    async with ollama.server() as server, asking.engine(server.url, model="") as engine:
        assert await asking.answer(engine) == "ok"
    assert [request.path for request in server.requests] == ["/api/generate"]


def test_an_answer_that_only_loaded_the_model_is_an_empty_one() -> None:
    for reason in ("load", "unload"):
        piece = Ollama().read(json.dumps({"model": "m", "response": "", "done": True, "done_reason": reason}).encode())
        assert (piece.text, piece.finish, piece.last) == ("", Finish.STOP, True)


def test_the_last_event_is_read_without_its_conversation() -> None:
    last = {"response": "", "done": True, "done_reason": "length", "context": ["never decoded"], "prompt_eval_count": 9, "eval_count": 3}
    piece = Ollama().read(json.dumps(last).encode())
    assert (piece.finish, piece.usage) == (Finish.LENGTH, Usage(generated=3))


def test_what_was_reused_is_told_by_releases_that_count_it() -> None:
    def usage(whole: int, reused: int) -> Usage | None:
        told = {"response": "", "done": True, "prompt_eval_count": whole, "prompt_eval_cached_count": reused, "eval_count": 3}
        return Ollama().read(json.dumps(told).encode()).usage

    assert usage(900, 800) == Usage(reused=800, read=100, generated=3)
    assert usage(100, 800) == Usage(generated=3)  # that cannot be


def test_something_else_is_no_answer() -> None:
    assert not Ollama().read(b'{"status":"ok"}').answer
    assert Ollama().read(b'{"error":"no"}').error == b'"no"'


def test_everything_that_steers_the_draws_is_sent_and_the_models_own_stops_stay_if_we_have_none() -> None:
    sampling = Sampling(temperature=0.5, top_p=0.8, min_p=0.1, repeat_penalty=1.2, seed=3)
    sent = json.loads(Ollama().body(Call("a", model="m", max_tokens=5, sampling=sampling)))
    assert sent["options"] == {"num_predict": 5, "temperature": 0.5, "top_p": 0.8, "min_p": 0.1, "repeat_penalty": 1.2, "seed": 3}
    assert sent["truncate"] is False


@pytest.mark.parametrize("odd", ["-3", "5", "9" * 5000, "1" * 20, "many"])
async def test_windows_that_no_model_has_are_not_taken(odd: str) -> None:
    figure = int(odd) if odd != "many" and len(odd) < 100 else odd
    shown = {"parameters": f"num_ctx                        {odd}", "model_info": {"a.context_length": figure}}
    routes = {
        "/api/show": status(200, shown),
        "/api/ps": status(200, {"models": [{"name": QWEN, "context_length": figure}]}),
        "/api/tags": status(200, {"models": [{"name": QWEN}]}),
    }
    async with CompletionServer(routes=routes) as server, ask(server) as engine:
        assert (await engine.ready()).context_tokens == 4096


@pytest.mark.parametrize("path", ["/api/show", "/api/ps", "/api/tags"])
async def test_a_page_of_endless_depth_is_no_page(path: str) -> None:
    deep = b'{"model_info":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
    routes = {"/api/tags": status(200, {"models": [{"name": QWEN}]}), path: status(200, deep)}
    async with CompletionServer(routes=routes) as server, ask(server, model=QWEN) as engine:
        assert (await engine.ready()).name == QWEN


async def test_a_model_that_cannot_be_read_hides_no_other() -> None:
    listed = [{"name": None}, {"name": "a", "expires_at": "soon"}, {"name": "bge-m3:latest"}, {"name": "who"}, {"name": "x" * 900}]
    routes = {"/api/tags": status(200, {"models": listed}), "/api/ps": status(200, {"models": None})}
    async with CompletionServer(routes=routes) as server, ask(server) as engine:
        assert (await engine.ready()).name == "who"


@pytest.mark.parametrize("odd", [-3, 10**30, 1e300, "many", [], {}])
def test_figures_that_cannot_be_are_not_told(odd: object) -> None:
    assert Ollama().read(json.dumps({"response": "", "done": True, "eval_count": odd}).encode()).usage == Usage()
