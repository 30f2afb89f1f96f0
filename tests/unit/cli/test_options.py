"""From options to settings."""

from __future__ import annotations

import click
import pytest

from monkeycode_lsp.cli.options import Chosen, overrides, settings_tree


def test_nothing_said_leaves_the_settings_alone():
    assert overrides(Chosen()) == {}


def test_an_address_means_a_remote_engine():
    chosen = Chosen(url="http://127.0.0.1:1", model="m", api_key_env="KEY")
    assert overrides(chosen) == {
        "engine": "remote",
        "remote": {"endpoints": [{"url": "http://127.0.0.1:1", "model": "m", "apiKeyEnv": "KEY"}]},
    }


def test_a_model_alone_means_the_local_engine():
    assert overrides(Chosen(model="0.5b")) == {"engine": "local", "local": {"model": "0.5b"}}


def test_an_engine_alone_is_just_that():
    assert overrides(Chosen(engine="off")) == {"engine": "off"}


@pytest.mark.parametrize(
    "chosen",
    [Chosen(url="http://x", engine="local"), Chosen(api_key_env="KEY"), Chosen(engine="remote", model="m")],
)
def test_what_contradicts_itself_is_refused(chosen):
    with pytest.raises(click.UsageError):
        overrides(chosen)


def test_single_settings_are_laid_over_the_rest():
    tree = overrides(Chosen(url="http://x", settings=("completion.maxTokens=48", "remote.retries=0")))
    assert tree["completion"] == {"maxTokens": "48"}
    assert tree["remote"]["retries"] == "0"
    assert tree["remote"]["endpoints"][0]["url"] == "http://x"


def test_lists_are_json_and_a_value_may_hold_an_equals_sign():
    assert settings_tree(['completion.disabledLanguages=["c"]']) == {"completion": {"disabledLanguages": ["c"]}}
    assert settings_tree(["scripted.text=a = b"]) == {"scripted": {"text": "a = b"}}
    assert settings_tree(["scripted.text="]) == {"scripted": {"text": ""}}


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        ("completion.maxTokens", "PATH=VALUE"),
        ("=1", "PATH=VALUE"),
        ("completion.maxTokns=1", "did you mean completion.maxTokens"),
        ("completion.maxTokens=many", "completion.maxTokens"),
        ("completion.disabledLanguages=[c", "not JSON"),
    ],
)
def test_a_wrong_setting_is_refused_in_words(pair, words):
    with pytest.raises(click.UsageError, match=words.replace(".", r"\.")):
        settings_tree([pair])
