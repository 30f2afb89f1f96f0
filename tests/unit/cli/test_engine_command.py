"""`monkeycode engine`."""

from __future__ import annotations

import sys
import time

import pytest

from monkeycode_lsp.engines.local import selftest, verdict
from monkeycode_lsp.engines.local.ladder import Attempt
from monkeycode_lsp.engines.local.verdict import Verdict


@pytest.fixture
def nothing_installed(monkeypatch):
    """A machine without any runtime."""
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    monkeypatch.setenv("PATH", "")


def test_print_shows_the_line_and_runs_nothing(run):
    done = run("engine", "install", "--print")
    assert done.exit_code == 0
    (line,) = done.stdout.splitlines()
    assert "llama-cpp-python" in line or "prebuilt" in line
    assert done.stderr.startswith("# ")


@pytest.mark.native
def test_what_is_installed_already_is_not_installed_again(run):
    if not selftest.is_installed():
        pytest.skip("needs the native engine")
    done = run("engine", "install", "--yes")
    assert done.exit_code == 0
    (line,) = done.stdout.splitlines()
    assert "installed already" in line
    assert line.endswith("monkeycode engine install --rebuild")


def test_what_is_installed_and_cannot_be_loaded_is_built_anew(run, monkeypatch, tmp_path):
    (tmp_path / "llama_cpp.py").write_text("raise ImportError('half of it is missing')", encoding="utf-8")
    monkeypatch.delitem(sys.modules, "llama_cpp", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))  # for the process that looks
    monkeypatch.syspath_prepend(tmp_path)
    done = run("engine", "install")
    assert done.exit_code == 1
    assert "half of it is missing\nSo it is built anew." in done.stderr
    assert "--yes" in done.stderr  # nothing was done unasked


def test_without_a_terminal_nothing_is_installed_unasked(run, nothing_installed):
    done = run("engine", "install")
    assert done.exit_code == 1
    assert "Run it with --yes." in done.stderr


def test_list_without_a_runtime_says_how_to_get_one(run, nothing_installed):
    done = run("engine", "list")
    assert done.exit_code == 1
    assert done.stdout.count("not installed") == 2
    assert f"{sys.executable} -m pip install 'monkeycode-lsp[prebuilt]'" in done.stdout
    assert "monkeycode engine install" in done.stdout


def test_try_without_a_runtime_says_how_to_get_one(run, nothing_installed):
    done = run("try", "--yes")
    assert done.exit_code == 1
    assert "No engine is installed" in done.stderr
    assert f"{sys.executable} -m pip install 'monkeycode-lsp[prebuilt]'" in done.stderr
    assert "monkeycode engine install" in done.stderr


def test_try_without_a_terminal_does_not_download_unasked(run, tmp_path, monkeypatch):
    server = tmp_path / "llama-server"
    server.write_text("#!/bin/sh\n", encoding="utf-8")
    server.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run("try")
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: The model Qwen2.5-Coder-0.5B-Instruct Q4_K_M is not here yet; it is 491 MB to download.")
    assert "monkeycode try --yes" in done.stderr


def test_after_a_stop_the_next_start_tries_anew_what_failed_once(run):
    verdict.remember("a", Verdict(attempt=Attempt(extra_buffers=False), at=time.time()))
    assert run("engine", "stop").exit_code == 0
    assert verdict.recall("a") is None
