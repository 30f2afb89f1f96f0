"""`monkeycode config`."""

from __future__ import annotations

import json

from monkeycode_lsp import config
from monkeycode_lsp.cli import config as config_command


def rows(done):
    assert done.exit_code == 0, done.output
    return {line.split()[0]: line.split() for line in done.stdout.splitlines()[1:]}


def test_defaults_are_not_worth_a_table(run):
    assert "Everything is at its default" in run("config", "show").stdout


def test_all_shows_every_setting(run):
    shown = rows(run("config", "show", "--all"))
    assert shown["completion.maxTokens"] == ["completion.maxTokens", "96", "default"]
    assert "remote.endpoints" in shown


def test_each_setting_says_where_it_comes_from(run, user_settings, tmp_path, monkeypatch):
    user_settings('engine = "remote"\n[completion]\nmaxTokens = 50\n[debounce]\nmaxMs = 10\n')
    (tmp_path / ".monkeycode.toml").write_text("[completion]\nmaxTokens = 40\n", encoding="utf-8")
    monkeypatch.setenv("MONKEYCODE_DEBOUNCE_MAX_MS", "20")
    shown = rows(run("config", "show"))
    assert shown["completion.maxTokens"][1:] == ["40", str(tmp_path / ".monkeycode.toml")]
    assert shown["debounce.maxMs"][1:] == ["20", "MONKEYCODE_DEBOUNCE_MAX_MS"]
    assert shown["engine"][1] == "remote"
    assert shown["engine"][2].endswith("monkeycode.toml")


def test_keys_passwords_and_headers_are_not_shown(run, user_settings):
    user_settings(
        '[[remote.endpoints]]\nurl = "http://me:s3cret@host:1/x"\napiKey = "s3cret"\nheaders = { Authorization = "s3cret" }\n'
        '[cache]\nsharedUrl = "redis://:s3cret@cache:6379"\n'
    )
    for arguments in (["config", "show"], ["config", "show", "--json"], ["config", "show", "--all"]):
        done = run(*arguments)
        assert "host:1/x" in done.stdout
        assert "cache:6379" in done.stdout
        assert "s3cret" not in done.output


def test_json_is_the_whole_tree_as_settings_are_written(run):
    decoded, problems = config.decode(json.loads(run("config", "show", "--json").stdout))
    assert (decoded, problems) == (config.Config(), [])


def test_problems_are_told_beside_the_table(run, user_settings):
    user_settings("nonsense = 1\n")
    assert "Setting nonsense: there is no such setting" in run("config", "show").stderr


def test_the_schema_has_ranges_and_the_words_of_the_code(run):
    schema = json.loads(run("config", "schema").stdout)
    deadline = schema["$defs"]["Completion"]["properties"]["deadlineMs"]
    assert deadline["description"] == "An ask is answered by then, with what there is."
    assert deadline["minimum"] == 50
    assert set(schema["$defs"]["Config"]["properties"]) == set(config.fields(config.Config))


def test_path_names_both_files(run, user_settings, home, tmp_path):
    user_settings("")
    assert run("config", "path").stdout.splitlines() == [
        f"user: {home / 'config' / 'monkeycode.toml'}",
        f"workspace: {tmp_path / '.monkeycode.toml'} (does not exist)",
    ]


def test_in_a_sub_folder_the_settings_of_the_workspace_hold(run, tmp_path, monkeypatch):
    (tmp_path / ".monkeycode.toml").write_text("[completion]\nmaxTokens = 40\n", encoding="utf-8")
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path / "src")
    assert rows(run("config", "show"))["completion.maxTokens"][1:] == ["40", str(tmp_path / ".monkeycode.toml")]
    assert f"workspace: {tmp_path / '.monkeycode.toml'}" in run("config", "path").stdout.splitlines()


def test_what_stands_in_the_query_of_an_address_may_be_a_key():
    shown = config_command.masked({"url": "https://user:secret1@h/v1?api-version=2024&key=secret2", "note": "a?b=c"})
    assert shown == {"url": "https://•••@h/v1?api-version=•••&key=•••", "note": "a?b=c"}
