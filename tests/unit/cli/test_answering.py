"""Who answers under some settings, before anybody is asked."""

from __future__ import annotations

import os

import pytest
from rich.console import Console

from monkeycode_lsp import config
from monkeycode_lsp.cli import answering
from monkeycode_lsp.errors import EngineError, EngineUnavailableError
from tests.managed.scene import header
from tests.servers import CompletionServer, status

DEAD = config.Endpoint(url="http://127.0.0.1:9")


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A machine with a model and a program to run it."""
    program = tmp_path / "llama-server"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    file = tmp_path / "mine.gguf"
    file.write_bytes(header(""))
    return file


def settings(model, *endpoints, engine="auto"):
    local = config.Local(model=str(model), runtime="managed")
    return config.Config(engine=engine, local=local, remote=config.Remote(endpoints=endpoints))


def prepare(found, *, typed_url=False):
    return answering.prepare(found, Console(), yes=False, again="again", typed_url=typed_url)


@pytest.mark.parametrize("endpoints", [(DEAD,), (DEAD, config.Endpoint(url="http://127.0.0.1:10"))])
def test_the_model_here_stands_in_for_endpoints_that_are_gone(model, endpoints):
    assert prepare(settings(model, *endpoints)) == "mine.gguf answers, on this machine, since no endpoint can be reached."


def test_it_does_not_where_only_the_endpoint_is_meant_or_no_model_is_here(model, tmp_path):
    for found in (settings(model, DEAD, engine="remote"), settings(tmp_path / "none.gguf", DEAD)):
        with pytest.raises(EngineUnavailableError, match=r"Nothing answers at http://127\.0\.0\.1:9"):
            prepare(found)


async def test_it_does_not_for_a_server_that_is_there_and_refuses_us(model):
    async with CompletionServer(status(401)) as server:
        found = settings(model, config.Endpoint(url=server.url, api="openai"))
        assert await answering._stand_in(found) is None


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("Start it, or correct `url` in `remote.endpoints`.", "Start it, or correct --url."),
        ("Check `url` and `api` in `remote.endpoints`.", "Check --url."),
        ("Check in `remote.endpoints` whether `url` should begin with http:", "Check whether --url should begin with http:"),
        ("Set `apiKey` or `apiKeyEnv` in `remote.endpoints`.", "Set --api-key-env."),
        ("named by `apiKeyEnv` in `remote.endpoints`, is", "named by --api-key-env, is"),
        ("or set `model` in `remote.endpoints` to one", "or set --model to one"),
        ("or name one in `model` of `remote.endpoints`.", "or name one in --model."),
        ("Set `caFile` of the endpoint in `remote.endpoints`.", "Set `caFile` of the endpoint in `remote.endpoints`."),
    ],
)
def test_settings_that_have_an_option_are_called_by_it(words, meant):
    found = answering.in_options(EngineError(words, remedy=words))
    assert (found.message, found.remedy) == (meant, meant)


def test_a_notice_is_told_once_and_not_where_the_failure_says_it_too(capsys):
    answering.tell(["It only chats.", "Nothing is here.", "It only chats."], besides="Nothing is here. Start it.")
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "It only chats.\n")
