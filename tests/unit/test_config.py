"""Settings: what is taken, what is refused in words, and that the rest stays."""

import pytest

from monkeycode_lsp import config
from monkeycode_lsp.config import Config, decode, from_environment, merge, without_workspace_secrets


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
        ({"remote": {"endpoints": [{"url": "x", "api": "soap"}]}}, ["remote.endpoints", "'soap'"]),
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
