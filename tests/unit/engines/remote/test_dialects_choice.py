"""Which API a server is asked by."""

import pytest

from monkeycode_lsp import config
from monkeycode_lsp.engines.remote import address, dialects
from monkeycode_lsp.errors import EngineUnavailableError


@pytest.mark.parametrize("api", ["auto", "openai", "vllm", "sglang", "tensorrt-llm"])
def test_servers_with_the_common_api_are_asked_by_it(api):
    endpoint = config.Endpoint(url="http://h", api=api)
    assert dialects.choose(endpoint, address.parse(endpoint.url)).name == "openai"


async def identity(endpoint, version):
    asked = []

    async def fetch(path, body):
        asked.append(path)
        return version

    dialect = dialects.choose(endpoint, address.parse(endpoint.url))
    return await dialect.identify(fetch, endpoint.model), asked


@pytest.mark.parametrize(
    "endpoint",
    [
        config.Endpoint(url="http://h", model="qwen2.5-coder:1.5b"),
        config.Endpoint(url="http://h:11434", model="qwen2.5-coder"),
        config.Endpoint(url="http://h:11434/v1", model="qwen2.5-coder"),
    ],
)
async def test_a_server_that_wraps_prompts_gets_no_markers(endpoint):
    """Ollama puts a ready-made marker prompt into the model's own template; with both halves it inserts by itself."""
    known, asked = await identity(endpoint, b'{"version":"0.12.3"}')
    assert (known.model, known.family, asked) == (endpoint.model, None, ["/api/version"])
    known, _ = await identity(endpoint, None)
    assert known.family is not None, "another server with such a name gets its markers"


async def test_a_server_that_is_said_to_be_ollama_is_not_asked_who_it_is():
    known, asked = await identity(config.Endpoint(url="http://h", api="ollama", model="qwen2.5-coder"), None)
    assert (known.family, asked) == (None, [])


async def test_ordinary_servers_are_not_asked_who_they_are():
    known, asked = await identity(config.Endpoint(url="http://h", model="qwen2.5-coder"), b'{"version":"1"}')
    assert known.family is not None
    assert asked == []


@pytest.mark.parametrize("api", ["mistral", "deepseek", "chat"])
def test_an_api_that_is_not_spoken_is_refused_in_words(api):
    endpoint = config.Endpoint(url="http://h", api=api)
    with pytest.raises(EngineUnavailableError, match=f"{api}.*api openai"):
        dialects.choose(endpoint, address.parse(endpoint.url))
