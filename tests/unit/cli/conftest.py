"""A command line without a terminal, on a machine that has nothing of the user's."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from monkeycode_lsp.cli import cli


@pytest.fixture
def run(home, tmp_path, monkeypatch):
    """Run `monkeycode` with these arguments, in a home of its own."""
    for name in ("HF_HOME", "HF_HUB_CACHE", "LLAMA_CACHE", "OLLAMA_MODELS", "XDG_CACHE_HOME", "XDG_DATA_HOME", "MONKEYCODE_LOG_LEVEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("MONKEYCODE_HOME", str(home))
    monkeypatch.chdir(tmp_path)

    def run(*arguments, stdin=None):
        return CliRunner().invoke(cli, [str(argument) for argument in arguments], input=stdin)

    return run


@pytest.fixture
def user_settings(home):
    """Write the user's own settings file."""

    def write(text):
        (home / "config").mkdir(parents=True, exist_ok=True)
        (home / "config" / "monkeycode.toml").write_text(text, encoding="utf-8")

    return write
