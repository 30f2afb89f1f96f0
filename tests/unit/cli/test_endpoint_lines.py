"""The lines that keep the endpoint of a command line."""

from __future__ import annotations

import tomllib

import pytest

from monkeycode_lsp import config
from monkeycode_lsp.cli import endpoint_lines, options
from monkeycode_lsp.cli.options import Chosen


def lines(**chosen):
    return "\n".join(endpoint_lines.of(options.overrides(Chosen(**chosen))))


def test_what_was_given_is_kept_and_nothing_else():
    assert lines(url="http://gpu:8000") == '[[remote.endpoints]]\nurl = "http://gpu:8000"'
    given = lines(url="http://gpu:8000/v1", model='a "b"\\c', api_key_env="TEAM_KEY")
    assert tomllib.loads(given)["remote"]["endpoints"] == [{"url": "http://gpu:8000/v1", "model": 'a "b"\\c', "apiKeyEnv": "TEAM_KEY"}]


def test_a_list_of_endpoints_and_a_template_are_kept_and_mean_the_same_in_the_file():
    chosen = ('remote.endpoints=[{"url": "http://a", "api": "vllm", "weight": 2}, {"url": "http://b"}]', "template=codellama")
    tree = tomllib.loads(lines(settings=chosen))
    decoded, problems = config.decode(tree)
    assert problems == []
    assert [(one.url, one.api, one.weight) for one in decoded.remote.endpoints] == [("http://a", "vllm", 2), ("http://b", "auto", 1)]
    assert decoded.template == "codellama"


@pytest.mark.parametrize(
    "endpoint",
    [
        '{"url": "http://gpu", "apiKey": "s3cret"}',
        '{"url": "http://gpu", "headers": {"x-key": "s3cret"}}',
        '{"url": "http://me:s3cret@gpu"}',
        '{"url": "http://gpu?key=s3cret"}',
        '{"url": "me:s3cret@gpu"}',
    ],
)
def test_what_may_be_a_key_is_named_and_not_shown(endpoint):
    told = lines(settings=(f"remote.endpoints=[{endpoint}]",))
    assert "s3cret" not in told
    assert tomllib.loads(told)["remote"]["endpoints"] == [{"url": "http://gpu"}]
    assert "# What is secret is left out here: " in told


def test_without_an_endpoint_on_the_command_line_there_are_no_lines():
    assert lines(engine="remote") == lines(settings=("template=codellama",)) == lines(settings=("remote.retries=1",)) == ""
