"""Settings: what is taken, what is refused in words, and that the rest stays."""

import pytest

from monkeycode_lsp import config
from monkeycode_lsp.config import Config, Endpoint, decode, from_environment, merge, without_workspace_secrets


def test_nothing_set_is_the_defaults():
    assert decode({}) == (Config(), [])


def test_names_are_the_same_words_in_camel_case():
    settings, problems = decode({"local": {"gpuLayers": 7}, "debounce": {"maxMs": 5}, "completion": {"disabledLanguages": ["go"]}})
    assert not problems
    assert (settings.local.gpu_layers, settings.debounce.max_ms, settings.completion.disabled_languages) == (7, 5, ("go",))


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ({"completion": {"maxTokns": 3}}, ["completion.maxTokns", "did you mean completion.maxTokens?"]),
        ({"local": {"gpuLayers": "many"}}, ["local.gpuLayers", "a whole number"]),
        ({"local": {"slots": 0}}, ["local.slots", ">= 1"]),
        ({"local": {"idleMinutes": 10**12}}, ["local.idleMinutes", "<= 525600"]),
        ({"engine": "gpu"}, ["engine", "'gpu'"]),
        ({"local": 7}, ["local", "group of settings"]),
        ({"template": {"prefix": "a"}}, ["template"]),
    ],
)
def test_a_value_that_cannot_be_used_is_named_and_the_rest_is_used(tree, words):
    settings, problems = decode(merge(tree, {"debounce": {"minMs": 9}}))
    assert len(problems) == 1
    assert all(word in problems[0] for word in words), problems
    assert settings == config.decode({"debounce": {"minMs": 9}})[0]


def test_a_bad_value_leaves_what_was_set_before():
    before = decode({"local": {"gpuLayers": 3}})[0]
    assert decode({"local": {"gpuLayers": []}}, before)[0].local.gpu_layers == 3


def test_null_means_not_set():
    assert decode({"engine": None, "local": None}) == (Config(), [])


def test_a_template_of_ones_own_is_taken_whole():
    settings, problems = decode({"template": {"prefix": "<P>", "suffix": "<S>", "middle": "<M>", "order": "spm"}})
    assert not problems
    assert settings.template == config.Template("<P>", "<S>", "<M>", "spm")


@pytest.mark.parametrize(
    ("name", "text", "read"),
    [
        ("MONKEYCODE_LOCAL_GPU_LAYERS", "0", lambda s: s.local.gpu_layers == 0),
        ("MONKEYCODE_ENABLED", "no", lambda s: s.enabled is False),
        ("MONKEYCODE_ENABLED", "1", lambda s: s.enabled is True),
        ("MONKEYCODE_COMPLETION_DISABLED_LANGUAGES", "python, go", lambda s: s.completion.disabled_languages == ("python", "go")),
        ("MONKEYCODE_COMPLETION_DISABLED_LANGUAGES", '["python"]', lambda s: s.completion.disabled_languages == ("python",)),
        ("MONKEYCODE_REMOTE_ENDPOINTS", '[{"url": "http://h"}]', lambda s: s.remote.endpoints[0].url == "http://h"),
        ("MONKEYCODE_COMPLETION_TEMPERATURE", "0.5", lambda s: s.completion.temperature == 0.5),
        ("MONKEYCODE_LOG_LEVEL", "debug", lambda s: s.log_level == "debug"),
        ("MONKEYCODE_TEMPLATE", "starcoder2", lambda s: s.template == "starcoder2"),
    ],
)
def test_variables_of_the_environment(name, text, read):
    settings, problems = decode(from_environment({name: text}))
    assert not problems
    assert read(settings)


@pytest.mark.parametrize(
    ("name", "text"), [("MONKEYCODE_ENABLED", "perhaps"), ("MONKEYCODE_LOCAL_THREADS", "two"), ("MONKEYCODE_REMOTE_ENDPOINTS", "[{")]
)
def test_a_variable_with_junk_is_named(name, text):
    settings, problems = decode(from_environment({name: text}))
    assert settings == Config()
    assert len(problems) == 1


def test_an_empty_variable_is_not_set():
    assert from_environment({"MONKEYCODE_ENGINE": "", "MONKEYCODE_LOCAL_THREADS": ""}) == {}


def test_a_workspaces_file_cannot_say_where_text_goes():
    kept, dropped = without_workspace_secrets({"remote": {"endpoints": []}, "engine": "remote", "completion": {"maxTokens": 1}})
    assert kept == {"completion": {"maxTokens": 1}}
    assert len(dropped) == 2


H = {"url": "http://h"}


@pytest.mark.parametrize(
    "written",
    [[H], H, "http://h", ["http://h"], [{"url": "http://h", "api": "auto"}], " http://h ", [{"url": "http://h", "weight": "1"}]],
    ids=str,
)
def test_one_endpoint_however_it_is_written(written):
    settings, problems = decode({"remote": {"endpoints": written}})
    assert not problems
    assert settings.remote.endpoints == (Endpoint(url="http://h"),)


def test_several_addresses_in_one_variable():
    settings, problems = decode(from_environment({"MONKEYCODE_REMOTE_ENDPOINTS": "http://a, http://b"}))
    assert not problems
    assert [endpoint.url for endpoint in settings.remote.endpoints] == ["http://a", "http://b"]


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        ({"api": "vlmm"}, "remote.endpoints.api: 'vlmm' is none of auto, openai, llama-server, ollama, vllm"),
        ({"weight": 0}, "remote.endpoints.weight: "),
        ({"api_key": "K1"}, "remote.endpoints.api_key: there is no such setting; did you mean remote.endpoints.apiKey?"),
        ({"Model": "m"}, "did you mean remote.endpoints.model?"),
        ({"headers": "x"}, "remote.endpoints.headers: "),
    ],
    ids=str,
)
def test_a_mistake_in_an_endpoint_costs_what_is_mistaken_and_no_more(endpoint, words):
    settings, problems = decode({"remote": {"endpoints": [H | endpoint]}})
    assert settings.remote.endpoints == (Endpoint(url="http://h"),)
    (problem,) = problems
    assert words in problem
    assert "K1" not in problem


def test_a_mistake_in_one_endpoint_costs_the_others_nothing():
    settings, problems = decode({"remote": {"endpoints": [H, {"model": "m"}, 7, {"url": "http://i", "weight": 0}]}})
    assert settings.remote.endpoints == (Endpoint(url="http://h"), Endpoint(url="http://i"))
    assert [problem.partition(":")[0] for problem in problems] == [
        "remote.endpoints (number 2)",
        "remote.endpoints (number 3)",
        "remote.endpoints (number 4).weight",
    ]


def test_words_are_the_same_in_capitals():
    settings, problems = decode({"remote": {"endpoints": [H | {"api": "vLLM"}]}, "logLevel": "DEBUG"})
    assert not problems
    assert (settings.remote.endpoints[0].api, settings.log_level) == ("vllm", "debug")
