"""Kind E: building the prompt and reaching the right route."""

import pytest

from tests import servers
from tests.e2e import scene as scenes
from tests.fakes import ollama

pytestmark = pytest.mark.e2e

QWEN = "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>"
STARCODER = "<fim_prefix>a<fim_suffix>b<fim_middle>"
DEEPSEEK = "<\uff5cfim▁begin\uff5c>a<\uff5cfim▁hole\uff5c>b<\uff5cfim▁end\uff5c>"


async def no_suffix(exchange):
    """What vLLM does."""
    if "suffix" in exchange.request.json:
        await exchange.respond(400, {"object": "error", "message": "suffix is not currently supported", "code": 400})
    else:
        await servers.reply("ok")(exchange)


async def test_a_model_with_markers_never_gets_a_suffix_field(start):
    # vllm-project/vllm#9976, arbs-io/github-copilot-llm-gateway#51
    async with start(no_suffix) as scene:
        for key in "ab":
            shown = await scene.show(f"{key} = ‸\n", no_suffix)
            assert shown.text == "ok"
            assert shown.halves == (f"{key} = ", "\n")
            assert "suffix" not in shown.requests[0].json


async def test_a_refused_suffix_is_not_sent_again(start):
    # vllm-project/vllm#9976: no markers are known for this model
    async with start(no_suffix) as scene:
        scene.lsp.configure(scenes.endpoint(scene.backend.url, "mystery-7b"))
        first = await scene.show("a = ‸\n", no_suffix)
        second = await scene.show("b = ‸\n", no_suffix)
        assert (first.text, second.text) == ("ok", "ok")
        assert [request.json.get("suffix") for request in first.requests + second.requests] == ["\n", None, None]
        assert [request.json["prompt"] for request in second.requests] == ["b = "]
        assert len(scene.lsp.shown_messages) == 1


async def test_a_suffix_field_is_used_where_the_server_inserts_by_itself(start):
    async with start() as scene:
        scene.lsp.configure(scenes.endpoint(scene.backend.url, "mystery-7b"))
        (request,) = (await scene.show("a = ‸\n", "1")).requests
        assert (request.json["prompt"], request.json["suffix"]) == ("a = ", "\n")
        assert scene.lsp.shown_messages == []


@pytest.mark.parametrize("name", ["qwen2.5-coder:7b-base", "mystery:7b"])
async def test_what_holds_markers_is_never_put_into_a_chats_template(home, name):
    # ollama/ollama#5403, twinnydotdev/twinny#142
    model = ollama.Model(insert="<PRE> {{ .Prompt }} <SUF>{{ .Suffix }} <MID>" if name.startswith("mystery") else ollama.QWEN_INSERT)
    async with scenes.running(home, backend=(backend := ollama.server(["ok"], models={name: model}))) as scene:
        scene.lsp.configure(scenes.endpoint(backend.url, name, api="ollama"))
        shown = await scene.show("a‸b", invoked=True)
    (request,) = shown.requests
    assert shown.text == "ok"
    assert backend.prompts == ["<PRE> a <SUF>b <MID>" if name.startswith("mystery") else QWEN]
    assert request.json.get("raw") or not any(marker in request.json["prompt"] for marker in ("<|fim", "<PRE>"))


async def test_every_family_gets_its_own_markers(start):
    # huggingface/llm-ls#111, huggingface/llm-ls#92, deepseek-ai/DeepSeek-Coder-V2#27
    names = {
        "qwen2.5-coder": QWEN,
        "Qwen/Qwen2.5-Coder-7B": QWEN,
        "bartowski/Qwen2.5-Coder-7B-GGUF:Q4_K_M": QWEN,
        "/models/qwen2.5-coder-1.5b-q8_0.gguf": QWEN,
        "starcoder2": STARCODER,
        "bigcode/starcoder2-7b": STARCODER,
        "org/StarCoder2-7B-GGUF:Q4_K_M": STARCODER,
        "deepseek-coder": DEEPSEEK,
        "deepseek-ai/deepseek-coder-6.7b-base": DEEPSEEK,
        "org/DeepSeek-Coder-V2-Lite-7B-GGUF:Q4_K_M": DEEPSEEK,
    }
    async with start() as scene:
        for name, prompt in names.items():
            scene.lsp.configure(scenes.endpoint(scene.backend.url, name))
            (request,) = (await scene.show("a‸b", "c", invoked=True)).requests
            assert request.json["prompt"].endswith(prompt), name
            assert request.json["prompt"].count(prompt[:5]) == prompt.count(prompt[:5])
            assert request.json["model"] == name


async def test_a_server_that_refuses_infill_is_asked_for_it_once(start):
    # ggml-org/llama.cpp#17900
    async def completion(exchange):
        if exchange.request.path == "/infill":
            await exchange.respond(501, {"error": {"code": 501, "message": "Infill is not supported by this model"}})
            return
        await exchange.head()
        await exchange.event({"content": "ok", "tokens": [1], "stop": False})
        await exchange.event({"content": "", "tokens": [], "stop": True, "stop_type": "eos", "timings": {"cache_n": 0, "prompt_n": 3}})
        await exchange.end()

    async with start(completion) as scene:
        scene.lsp.configure(scenes.endpoint(scene.backend.url, "mystery-7b", api="llama-server"))
        for key, paths in (("a", ["/infill", "/completion"]), ("b", ["/completion"])):
            shown = await scene.show(f"{key} = ‸\n", completion)
            assert shown.text == "ok"
            assert [request.path for request in shown.requests] == paths
        assert len(scene.lsp.shown_messages) == 1
        assert "fill in the middle" in scene.lsp.shown_messages[0]


async def test_every_form_of_the_address_leads_to_the_same_route(start):
    # continuedev/continue#7178, twinnydotdev/twinny#420, twinnydotdev/twinny#491, chaitin/MonkeyCode#185
    async with start() as scene:
        for number, path in enumerate(("", "/", "/v1", "/v1/", "/v1/completions", "/v1/completions/", "//", "/v1//")):
            scene.lsp.configure(scenes.endpoint(scene.backend.url + path))
            shown = await scene.show(f"x{number} = ‸", "ok")
            assert shown.text == "ok"
            assert [(request.method, request.path) for request in shown.requests] == [("POST", "/v1/completions")]


async def test_a_path_before_v1_is_kept(start):
    async with start() as scene:
        for path in ("/team/v1", "/team/v1/completions"):
            scene.lsp.configure(scenes.endpoint(scene.backend.url + path))
            (request,) = (await scene.show(f"x{len(path)} = ‸", "ok")).requests
            assert request.path == "/team/v1/completions"


async def test_no_text_is_quoted_twice(start):
    # continuedev/continue#5336, continuedev/continue#6340
    async with start() as scene:
        for name in ("a", "b"):
            scene.lsp.open(f"file:///w/{name}.py", "def shared(value):\n    return value * 2\n")
        for name in ("a", "b", "a", "b"):
            await scene.ask(f"file:///w/{name}.py", 2, 0)
        (request,) = (await scene.show("own_line = shared(‸)\n", "1", uri="file:///w/c.py")).requests
        assert request.json["prompt"].count("def shared") <= 1
        assert request.json["prompt"].count("own_line") == 1


@pytest.mark.parametrize("text", ["<|fim_middle|>", "<|endoftext|>", "<|file_sep|>", "<|im_start|>"])
async def test_text_of_the_user_never_becomes_a_control_marker(start, text):
    # Decision 7: neutralised in the prompt, undone in the answer.
    async with start() as scene:
        shown = await scene.show(f"MARK = '{text}'\nMARKS = [MARK, ‸]\n", "MARK")
        prompt = shown.requests[0].json["prompt"]
        inside = prompt.removeprefix(scenes.PREFIX).removesuffix(scenes.MIDDLE).replace(scenes.SUFFIX, "", 1)
        assert text not in inside
        assert shown.result == f"MARK = '{text}'\nMARKS = [MARK, MARK]\n"
