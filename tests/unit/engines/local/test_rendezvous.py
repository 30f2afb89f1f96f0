"""Where an engine process and its clients meet."""

import os
import sys
import tempfile

import pytest

from monkeycode_lsp.engines.local import rendezvous

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there it is a file that may have any name")


@pytest.fixture
def made(monkeypatch, tmp_path):
    """A path for a home and a folder for temporary files."""
    paths = []

    def make(*, home, temporary=tmp_path):
        temporary.mkdir(parents=True, exist_ok=True)
        monkeypatch.setenv("MONKEYCODE_HOME", str(home))
        monkeypatch.setattr(tempfile, "tempdir", str(temporary))
        path = rendezvous.new_path()
        paths.append(path)
        listener, _ = rendezvous.listen(path, loopback=False)
        listener.close()
        return path

    yield make
    for path in paths:
        rendezvous.remove(path)


@pytest.fixture
def short():
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="r") as folder:
        yield folder


def test_it_is_in_our_private_folder(made, short):
    path = made(home=short)
    assert path.parent.name == "run"
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_home_that_is_too_deep_is_replaced_by_a_private_temporary_folder(made, tmp_path):
    path = made(home=tmp_path / ("ä" * 60))
    assert path.parent.stat().st_mode & 0o777 == 0o700
    rendezvous.remove(path)
    assert not path.parent.exists()


def test_so_is_a_folder_for_temporary_files_that_is_too_deep(made, tmp_path):
    deep = tmp_path / ("ä" * 60)
    path = made(home=deep / "home", temporary=deep / "tmp")
    assert len(os.fsencode(path)) <= 100


def test_a_home_that_cannot_be_made_is_replaced_too(made, tmp_path):
    (tmp_path / "file").write_text("")
    assert made(home=tmp_path / "file" / "home").name == "engine.sock"
