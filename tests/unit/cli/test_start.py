"""How the command line starts, and how it ends."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

import monkeycode_lsp
from monkeycode_lsp import cli
from monkeycode_lsp.cli import COMMANDS
from monkeycode_lsp.models import catalogue

HEAVY = {"pygls", "lsprotocol", "httpx", "rich", "llama_cpp", "xllamacpp", "asyncio"}


def python(code, *arguments):
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_import_nothing_heavy(argument):
    done = python(
        "import sys\nfrom monkeycode_lsp.cli import run\ncode = run([sys.argv[1]])\n"
        "print('\\nLOADED', *sorted({name.split('.')[0] for name in sys.modules}))\nsys.exit(code)",
        argument,
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.rpartition("LOADED")[2].split())
    assert "click" in loaded
    assert not loaded & HEAVY


def test_the_way_to_the_server_imports_no_command_line():
    done = python("import sys\nimport monkeycode_lsp.__main__\nprint(*sys.modules)")
    assert done.returncode == 0, done.stderr
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert not loaded & (HEAVY | {"click"})


def test_every_command_loads_and_has_the_summary_of_the_list():
    for name, lazy in COMMANDS.items():
        command = lazy.load()
        assert command.name == name
        assert command.help, name


def test_help_names_every_command():
    text = CliRunner().invoke(cli.cli, ["--help"]).output
    for name, lazy in COMMANDS.items():
        assert f"  {name} " in text
        assert lazy.summary in text


def test_version_is_the_packages():
    assert monkeycode_lsp.__version__ in CliRunner().invoke(cli.cli, ["--version"]).output


@pytest.mark.parametrize("arguments", [[name, "--help"] for name in COMMANDS])
def test_every_command_has_help(arguments):
    assert CliRunner().invoke(cli.cli, arguments).exit_code == 0


def test_an_error_of_ours_is_a_sentence_and_its_remedy(run):
    done = run("model", "pull", "gpt-17")
    assert done.exit_code == 1
    assert done.stderr == "Error: There is no model called gpt-17 in the catalogue.\nSee `monkeycode model list`.\n"
    assert done.stdout == ""


def test_wrong_usage_is_exit_code_2(capsys):
    assert cli.run(["serve", "--no-such-option"]) == 2
    assert "no-such-option" in capsys.readouterr().err


def test_an_interrupt_is_exit_code_130_without_a_traceback():
    code = (
        "import click, sys\nfrom monkeycode_lsp import cli\n"
        "@cli.cli.result_callback()\ndef interrupted(*a, **k): raise KeyboardInterrupt\n"
        "sys.exit(cli.run(['config', 'path']))"
    )
    done = python(code)
    assert done.returncode == 130
    assert "Interrupted" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(run, shell):
    done = run("completion", shell)
    assert done.exit_code == 0
    assert "_MONKEYCODE_COMPLETE" in done.stdout


def completed(home, *words):
    done = subprocess.run(
        [sys.executable, "-m", "monkeycode_lsp"],
        env={
            "PATH": "", "HOME": str(home), "MONKEYCODE_HOME": str(home), "_MONKEYCODE_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(("monkeycode", *words)), "COMP_CWORD": str(len(words)),
        },
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_shell_completes_names_of_commands(home):
    assert completed(home, "comp") == ["plain,complete", "plain,completion"]


def test_the_shell_completes_models_files_and_settings(home):
    (home / "models").mkdir(parents=True)
    (home / "models" / "mine.gguf").write_bytes(b"GGUF")
    assert f"plain,{catalogue.DEFAULT_ID}" in completed(home, "model", "pull", "qwen")
    for command in ("remove", "path", "verify"):
        assert completed(home, "model", command, "m") == ["plain,mine.gguf"]
    assert completed(home, "complete", "app") == ["file,app"]
    assert "plain,completion.maxTokens=" in completed(home, "try", "--setting", "completion.max")
