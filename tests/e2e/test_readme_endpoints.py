"""The settings that the README shows for each kind of server, read out of it and run against that server's fake."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import sys
import tomllib
import typing
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import monkeycode_lsp.engines.remote
from monkeycode_lsp import config, settings
from monkeycode_lsp.engines.remote import address, dialects
from monkeycode_lsp.engines.remote.pool import hedging
from monkeycode_lsp.prompt import families
from tests import driver, servers
from tests.fakes import chat, deepseek, llama_server, mistral, ollama, openai, sglang, tensorrt_llm, vllm

pytestmark = pytest.mark.e2e

README = Path(__file__).parents[2] / "README.md"
RECIPES = Path(monkeycode_lsp.engines.remote.__file__).with_name("RECIPES.md")
ANSWER = "a + b"
KEY = "a-key"
MODEL = "Qwen/Qwen2.5-Coder-7B"
FILE = "qwen2.5-coder-7b-q8_0.gguf"


@dataclass(frozen=True)
class Kind:
    """What the README's line for one kind of server means."""

    api: str
    route: str
    fakes: typing.Callable[[], tuple[servers.CompletionServer, ...]]


def kind(api, route, *fakes):
    return Kind(api, route, lambda: tuple(fake() for fake in fakes))


KINDS = {
    "vLLM": kind("vllm", "/v1/completions", lambda: vllm.server(model=MODEL)),
    "SGLang": kind("sglang", "/v1/completions", lambda: sglang.server(model=MODEL)),
    "TensorRT-LLM": kind("tensorrt-llm", "/v1/completions", lambda: tensorrt_llm.server(model=MODEL)),
    "llama-server": kind("llama-server", "/completion", lambda: llama_server.server([ANSWER], model=FILE)),
    "Ollama": kind("ollama", "/api/generate", lambda: ollama.server([ANSWER], models={"qwen2.5-coder:7b-base": ollama.Model()})),
    "llama-cpp-python": kind("openai", "/v1/completions", lambda: openai.server(model=FILE)),
    "Mistral's Codestral": kind("mistral", "/v1/fim/completions", lambda: mistral.server(key=KEY)),
    "DeepSeek": kind("deepseek", "/beta/completions", lambda: deepseek.server(key=KEY)),
    "any other with an OpenAI-compatible `/v1/completions`": kind(
        "openai", "/v1/completions", lambda: openai.server(model="qwen2.5-coder-7b", key=KEY)
    ),
    "one that only chats": kind("chat", "/v1/chat/completions", lambda: chat.server(key=KEY)),
    "several of these": kind("vllm", "/v1/completions", lambda: vllm.server(model=MODEL), lambda: vllm.server(model=MODEL)),
}


def table():
    """The settings by the name of the server."""
    text = README.read_text(encoding="utf-8").split("<!-- endpoints:begin -->\n")[1].split("<!-- endpoints:end -->")[0]
    rows = [[cell.strip() for cell in line.strip("|\n").split(" | ")] for line in text.splitlines()[2:]]
    return {row[0]: "\n".join(re.findall(r"`([^`]*)`", row[-1])) for row in rows}


SETTINGS = table()


def endpoints(lines, home):
    """What they mean once they are in the user's file."""
    file = home / "config" / "monkeycode.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(lines, encoding="utf-8")
    resolved, problems = settings.load()
    assert problems == []
    return resolved.remote.endpoints


def moved(lines, shown, fakes):
    """The same lines with the addresses of the fakes.  What the real address says of its server is said in a setting."""
    for endpoint, fake in zip(shown, fakes, strict=True):
        parts = urlsplit(endpoint.url)
        by_address = dialects.choose(endpoint, address.parse(endpoint.url))
        api = f'\napi = "{by_address.name}"' if by_address is not None and endpoint.api == "auto" else ""
        lines = lines.replace(f'"{endpoint.url}"', f'"{fake.url}{parts.path}"{api}')
    return lines


def test_every_line_has_its_fake_and_every_api_its_line():
    assert set(SETTINGS) == set(KINDS)
    words = {word for word in typing.get_args(typing.get_type_hints(config.Endpoint)["api"]) if word != "auto"}
    assert {kind.api for kind in KINDS.values()} == words


@pytest.mark.parametrize("name", KINDS)
async def test_the_settings_of_the_readme_get_an_answer_by_the_right_route(name, home):
    lines, kind = SETTINGS[name], KINDS[name]
    shown = endpoints(lines, home)
    async with AsyncExitStack() as running:
        fakes = [await running.enter_async_context(fake) for fake in kind.fakes()]
        endpoints(moved(lines, shown, fakes), home)
        env = {endpoint.api_key_env: KEY for endpoint in shown if endpoint.api_key_env}
        lsp = await running.enter_async_context(driver.server(home, env=env))
        assert await lsp.complete("file:///w/add.py", marked="def add(a, b):\n    return ‸\n") == ANSWER
        (asked,) = [request for fake in fakes for request in fake.requests]
        assert asked.path == kind.route
        assert "return " in asked.body.decode()
        assert [text for text in lsp.shown_messages if "only chats" not in text] == []


async def test_the_line_that_tries_an_address_shows_its_answer(home):
    (command,) = re.findall(r"Try it first: `monkeycode ([^`]*)`", README.read_text(encoding="utf-8"))
    async with vllm.server(model=MODEL) as fake:
        words = command.replace("http://127.0.0.1:8000", fake.url).split()
        environ = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()} | {"MONKEYCODE_HOME": str(home)}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "monkeycode_lsp", *words, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, env=environ
        )
        out, _ = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 0, out
    assert f">>{ANSWER}<<" in out.decode()


def test_the_lines_for_neovim_are_the_settings_of_an_endpoint():
    text = README.read_text(encoding="utf-8")
    (lua,) = re.findall(r"<!-- endpoints:neovim -->\n```lua\n.*init_options = (.*) }\)\n```", text)
    tree = json.loads(re.sub(r"(\w+) =", r'"\1":', lua).replace("'", '"').replace("{ {", "[ {").replace("} }", "} ]", 1))
    layers = settings.Layers(environ={})
    layers.set_client(tree)
    resolved, problems = layers.resolve()
    assert problems == []
    assert [endpoint.url for endpoint in resolved.remote.endpoints] == ["http://127.0.0.1:8000"]


def test_a_team_s_own_servers_with_names_that_look_public_are_not_metered():
    blocks = re.findall(r"```toml\n(.*?)```", RECIPES.read_text(encoding="utf-8"), flags=re.DOTALL)
    shared = [tomllib.loads(block)["remote"]["endpoints"] for block in blocks if block.count("[[remote.endpoints]]") > 1]
    assert shared
    for endpoint in itertools.chain.from_iterable(shared):
        assert endpoint["metered"] == "no"
        assert hedging.is_metered("auto", urlsplit(endpoint["url"]).hostname)  # else the line were not needed


def test_a_template_that_is_shown_is_one_that_there_is():
    shown = re.findall(r'`template = "([^"]*)"`', RECIPES.read_text(encoding="utf-8"))
    assert shown
    assert set(shown) <= {family.name for family in families.FAMILIES}


def test_the_settings_of_the_recipes_decode(home):
    blocks = re.findall(r"```toml\n(.*?)```", RECIPES.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert blocks
    for block in blocks:
        assert endpoints(block, home) or "sharedUrl" in block
