from __future__ import annotations

import pytest

from monkeycode_lsp import config
from monkeycode_lsp.engines.remote import address, dialects
from monkeycode_lsp.engines.remote.dialects.base import Call
from monkeycode_lsp.engines.remote.http import headers, transport
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
        "http://h/v1/fim/completions",
        "http://h/v1/models",
        "HTTP://h/V1",
        "http://h/v1/v1",
        "http://h/v1/V1/completions",
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
        ("https://h/v1beta/openai/", "https://h/v1beta/openai/completions"),
        ("https://h/v1beta/openai/chat/completions", "https://h/v1beta/openai/completions"),
    ],
)
def test_a_server_may_count_its_versions_otherwise(text: str, url: str) -> None:
    assert address.parse(text).url("/v1/completions") == url
    assert address.parse(text).url("/health").endswith("/health")


@pytest.mark.parametrize(
    ("api", "text", "url"),
    [
        ("openai", "https://h/llm/completions", "https://h/llm/completions"),
        ("openai", "https://h/completions?a=1", "https://h/completions?a=1"),
        (
            "openai",
            "https://h/openai/deployments/gpt/completions?api-version=2",
            "https://h/openai/deployments/gpt/completions?api-version=2",
        ),
        ("chat", "https://h/openai/deployments/gpt/chat/completions?v=2", "https://h/openai/deployments/gpt/chat/completions?v=2"),
        ("chat", "https://h/chat/completions/", "https://h/chat/completions"),
        ("chat", "https://h/x/v1/chat/completions", "https://h/x/v1/chat/completions"),
        ("mistral", "https://h/x/fim/completions", "https://h/x/fim/completions"),
        ("deepseek", "https://h/x/beta/completions", "https://h/x/beta/completions"),
        ("ollama", "https://h/x/api/generate?k=1", "https://h/x/api/generate?k=1"),
        ("llama-server", "https://h/x/completion", "https://h/x/completion"),
    ],
)
def test_a_whole_route_that_is_not_below_v1_is_asked_exactly_there(api: str, text: str, url: str) -> None:
    dialect = dialects.by_name(api)
    assert address.parse(text).url(dialect.path(Call(text="a", is_marked=True))) == url


def test_the_zone_of_an_address_is_written_either_way() -> None:
    for text in ("http://[fe80::1%eth0]:81", "http://[fe80::1%25eth0]:81"):
        parsed = address.parse(text)
        assert parsed.host == "fe80::1%eth0"
        assert parsed.link_local
        assert transport._names(parsed) == ("fe80::1%eth0", b"[fe80::1]:81")  # the server knows nothing of our interfaces


@pytest.mark.parametrize("host", ["127.1", "127.0.0.1", "0x7f.1", "2130706433", "017700000001", "0", "[::1]", "[::]", "[::ffff:127.0.0.1]"])
def test_numbers_that_mean_this_machine_are_known_however_they_are_written(host: str) -> None:
    assert address.parse(f"http://{host}:81").loopback


@pytest.mark.parametrize(
    "host", ["128.1", "10.0.0.1", "[fe80::1]", "[::ffff:10.0.0.1]", "127.0.0.1.example", "127.0.0.256", "beef", "1e100.net"]
)
def test_numbers_and_names_that_may_mean_another_machine_are_not_taken_for_this_one(host: str) -> None:
    assert not address.parse(f"http://{host}:81").loopback


@pytest.mark.parametrize("text", ["", "ftp://h", "http://h:0", "http://", "http://h:99999", "http://a b", "http://[::1"])
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
