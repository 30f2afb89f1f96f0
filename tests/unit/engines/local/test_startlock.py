from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from monkeycode_lsp import folders
from monkeycode_lsp.engines.local.host.startlock import StartLock


@pytest.fixture
def path(home):
    return folders.private(folders.runtime()) / "engine-x.lock"


def test_one_at_a_time_holds_it(path):
    held = StartLock.take(path)
    assert StartLock.take(path) is None
    held.release()
    again = StartLock.take(path)
    assert again is not None
    again.release()
    assert not path.exists()


def test_it_is_free_when_its_holder_was_killed(path):
    code = f"import os; from pathlib import Path; from {StartLock.__module__} import StartLock; StartLock.take(Path({str(path)!r})); os._exit(9)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    held = StartLock.take(path)
    assert held is not None
    held.release()


@pytest.mark.skipif(sys.platform == "win32", reason="a file that is open cannot be taken away there")
def test_a_file_that_was_taken_away_meanwhile_locks_nothing(path, monkeypatch):
    path.write_text("")
    real = os.open

    def taken_away(*arguments):
        descriptor = real(*arguments)
        path.unlink()
        return descriptor

    monkeypatch.setattr(os, "open", taken_away)
    assert StartLock.take(path) is None
    monkeypatch.undo()
    assert not path.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_link_in_its_place_is_an_error_and_leads_nowhere(path):
    path.symlink_to(path.with_name("elsewhere"))
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        StartLock.take(path)
    assert not path.with_name("elsewhere").exists()
