from __future__ import annotations

import pytest

from monkeycode_lsp import config
from monkeycode_lsp.engines.remote import address, dialects
from monkeycode_lsp.engines.remote.http import headers
from monkeycode_lsp.errors import EngineUnavailableError


@pytest.mark.parametrize(
    "text",
    [
        "http://h",
        "http://h/",
        "http://h/v1",
        "http://h/v1/",
        "http://h/v1/completions",
        "http://h/v1/chat/completions",
        "http://h/chat/completions",
        "http://h/v1/fim/completions",
        "http://h/v1/models",
        "http://h/completions",
        "http://h/completion",
        "http://h/infill",
        "http://h/api/generate",
        "http://h/api/chat",
        "http://h/beta",
        "http://h/beta/completions/",
        "http://h//",
        "h",
        " http://h/v1\n",
    ],
)
def test_every_way_to_write_a_server_means_the_same_route(text: str) -> None:
    assert address.parse(text).url("/v1/completions") == "http://h/v1/completions"


def test_a_path_before_the_route_and_a_query_are_kept() -> None:
    assert address.parse("https://h:8443/llm/v1?key=1").url("/v1/models") == "https://h:8443/llm/v1/models?key=1"


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://h/api/paas/v4", "https://h/api/paas/v4/completions"),
        ("https://h/api/v3/completions", "https://h/api/v3/completions"),
        ("https://h/api/v1", "https://h/api/v1/completions"),
        ("https://h/v2/v1", "https://h/v2/v1/completions"),
        ("https://h/api", "https://h/api/v1/completions"),
        ("https://h/v1beta/openai", "https://h/v1beta/openai/v1/completions"),
    ],
)
def test_a_server_may_count_its_versions_otherwise(text: str, url: str) -> None:
    assert address.parse(text).url("/v1/completions") == url
    assert address.parse(text).url("/health").endswith("/health")


@pytest.mark.parametrize("text", ["", "ftp://h", "http://", "http://h:99999", "http://a b", "http://[::1"])
def test_an_address_that_cannot_be_used_names_the_setting(text: str) -> None:
    with pytest.raises(EngineUnavailableError, match=r"remote\.endpoints"):
        address.parse(text)


def test_credentials_in_an_address_are_sent_but_never_shown() -> None:
    parsed = address.parse("http://me:s%40crt@h/v1")
    assert parsed.base == "http://h"
    assert parsed.credentials == ("me", "s@crt")
    assert headers.build(config.Endpoint(), "", parsed.credentials)["authorization"] == "Basic bWU6c0BjcnQ="


@pytest.mark.parametrize(
    ("api", "url", "name"),
    [
        ("auto", "http://h/infill", "llama-server"),
        ("auto", "http://h/completion", "llama-server"),
        ("llama-server", "http://h", "llama-server"),
        ("openai", "http://h/completion", "openai"),
        ("auto", "http://h/api/generate", "ollama"),
        ("auto", "http://h/v1/fim/completions", "mistral"),
        ("auto", "http://h/beta/completions", "deepseek"),
        ("auto", "https://api.mistral.ai", "mistral"),
        ("auto", "codestral.mistral.ai/v1", "mistral"),
        ("auto", "https://api.deepseek.com/beta", "deepseek"),
        ("auto", "https://api.deepseek.com/v1", "deepseek"),
        ("chat", "https://api.deepseek.com", "chat"),
        ("auto", "http://h", None),
        ("auto", "http://h/v1/chat/completions", None),
        ("auto", "http://h:11434", None),
        ("auto", "http://api.mistral.ai.example", None),
    ],
)
def test_the_dialect_comes_from_the_setting_or_the_address_or_must_be_asked_for(api: str, url: str, name: str | None) -> None:
    endpoint = config.Endpoint(url=url, api=api)  # type: ignore[arg-type]  # one of the words
    chosen = dialects.choose(endpoint, address.parse(url))
    assert (chosen.name if chosen else None) == name
