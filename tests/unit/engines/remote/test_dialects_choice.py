"""Which API a server is asked by."""

import pytest

from monkeycode_lsp import config
from monkeycode_lsp.engines.remote import address, dialects
from monkeycode_lsp.errors import EngineUnavailableError


@pytest.mark.parametrize("api", ["auto", "openai", "vllm", "sglang", "tensorrt-llm"])
def test_servers_with_the_common_api_are_asked_by_it(api):
    endpoint = config.Endpoint(url="http://h", api=api)
    assert dialects.choose(endpoint, address.parse(endpoint.url)).name == "openai"


@pytest.mark.parametrize("api", ["ollama", "mistral", "deepseek", "chat"])
def test_an_api_that_is_not_spoken_is_refused_in_words(api):
    endpoint = config.Endpoint(url="http://h", api=api)
    with pytest.raises(EngineUnavailableError, match=f"{api}.*api openai"):
        dialects.choose(endpoint, address.parse(endpoint.url))
