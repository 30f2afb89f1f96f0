"""Where the private sockets live."""

from __future__ import annotations

import sys

import pytest

from monkeycode_lsp import folders

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is one folder for them there")


@pytest.fixture(autouse=True)
def cache(home, tmp_path, monkeypatch):
    monkeypatch.delenv("MONKEYCODE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))
    return folders.cache()


@pytest.mark.parametrize("why", ["unset", "empty", "missing", "relative", "a file", "below a file", "a link", "open to others"])
def test_a_runtime_folder_of_no_use_is_replaced_by_the_cache(tmp_path, monkeypatch, cache, why):
    given = tmp_path / "given"
    if why in {"relative", "open to others"}:
        given.mkdir(mode=0o700)
    if why in {"a file", "below a file"}:
        given.touch(mode=0o600)
    if why == "a link":
        (tmp_path / "real").mkdir(mode=0o700)
        given.symlink_to(tmp_path / "real")
    if why == "open to others":
        given.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    value = {"empty": "", "relative": "given", "below a file": str(given / "run")}.get(why, str(given))
    monkeypatch.setenv("XDG_RUNTIME_DIR", value)
    if why == "unset":
        monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert folders.runtime() == cache / "run"


def test_the_users_private_runtime_folder_is_used(tmp_path, monkeypatch):
    (tmp_path / "given").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "given"))
    assert folders.runtime() == tmp_path / "given" / folders.NAME
