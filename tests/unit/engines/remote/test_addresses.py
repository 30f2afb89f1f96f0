from __future__ import annotations

import pytest

from monkeycode_lsp import config
from monkeycode_lsp.engines.remote import address, dialects, headers, proxy
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
        "h",
        " http://h/v1\n",
    ],
)
def test_every_way_to_write_a_server_means_the_same_route(text: str) -> None:
    assert address.parse(text).url("/v1/completions") == "http://h/v1/completions"


def test_a_path_before_the_route_and_a_query_are_kept() -> None:
    assert address.parse("https://h:8443/llm/v1?key=1").url("/v1/models") == "https://h:8443/llm/v1/models?key=1"


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
        ("auto", "http://h", "openai"),
        ("auto", "http://h/infill", "llama-server"),
        ("auto", "http://h/completion", "llama-server"),
        ("llama-server", "http://h", "llama-server"),
        ("openai", "http://h/completion", "openai"),
    ],
)
def test_the_dialect_comes_from_the_setting_or_the_address(api: str, url: str, name: str) -> None:
    endpoint = config.Endpoint(url=url, api=api)  # type: ignore[arg-type]  # one of the words
    assert dialects.choose(endpoint, address.parse(url)).name == name


PROXIES = {"HTTP_PROXY": "http://p:1", "https_proxy": "q:2", "NO_PROXY": "intern.example, .corp:8080, 10.0.0.0/8,*.dev.example"}


@pytest.mark.parametrize(
    ("url", "via"),
    [
        ("http://h", "http://p:1"),
        ("https://h", "http://q:2"),
        ("http://intern.example", None),
        ("http://a.intern.example", None),
        ("http://notintern.example", "http://p:1"),
        ("http://x.corp:8080", None),
        ("http://x.corp:81", "http://p:1"),
        ("http://10.1.2.3", None),
        ("http://11.1.2.3", "http://p:1"),
        ("http://x.dev.example", None),
        ("http://localhost:1", None),
        ("http://LOCALHOST", None),
        ("http://127.3.2.1", None),
        ("http://[::1]:80", None),
        ("https://a.localhost", None),
    ],
)
def test_the_proxy_follows_the_environment_but_this_machine_is_reached_directly(url: str, via: str | None) -> None:
    assert proxy.choose(address.parse(url), PROXIES) == via


def test_all_proxy_is_the_last_choice_and_a_star_exempts_everything() -> None:
    somewhere = address.parse("http://h")
    assert proxy.choose(somewhere, {"ALL_PROXY": "socks5://p:1"}) == "socks5://p:1"
    assert proxy.choose(somewhere, {"ALL_PROXY": "socks5://p:1", "no_proxy": "*"}) is None
    assert proxy.choose(somewhere, {}) is None


def test_a_key_loses_the_white_space_of_copying() -> None:
    told: list[str] = []
    assert headers.key(config.Endpoint(api_key=" K1\r\n"), {}, told.append) == "K1"
    assert headers.key(config.Endpoint(api_key_env="KEY"), {"KEY": "K2\n"}, told.append) == "K2"
    assert not told
    assert not headers.key(config.Endpoint(api_key_env="KEY"), {}, told.append)
    assert "KEY" in told[0]


def test_the_users_own_headers_win_and_cannot_break_a_request() -> None:
    built = headers.build(config.Endpoint(headers={"Authorization": "Token x\r\nEvil: 1", "X-Team": "a"}), "K1", None)
    assert built["authorization"] == "Token x Evil: 1"
    assert built["x-team"] == "a"
