from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from monkeycode_lsp.models.part import DiskError, PartFile, WrongContentError

FULL = Path("/dev/full")


def silent(done: int, total: int) -> None:
    pass


@pytest.mark.skipif(not FULL.exists(), reason="needs a device that is always full")
def test_a_disk_that_fills_up_is_said_with_what_to_do(tmp_path):
    path = tmp_path / "model.part"
    path.symlink_to(FULL)
    with pytest.raises(DiskError, match="The disk is full") as caught, PartFile(path, report=silent) as part:
        part.write(b"x" * 1_000_000)
    assert "what is here is kept" in caught.value.remedy


@pytest.mark.skipif(not FULL.exists(), reason="needs a device that is always full")
def test_a_disk_that_fills_up_with_the_last_bytes_is_said_too(tmp_path):
    path = tmp_path / "model.part"
    path.symlink_to(FULL)
    with pytest.raises(DiskError, match="The disk is full"), PartFile(path, report=silent) as part:
        part.write(b"x")  # still in a buffer


def test_a_part_that_cannot_be_opened_is_said(tmp_path):
    (tmp_path / "model.part").mkdir()
    with pytest.raises(DiskError, match="cannot be written"), PartFile(tmp_path / "model.part", report=silent):
        pass


def test_cutting_and_continuing_keeps_hash_and_bytes_together(tmp_path):
    path = tmp_path / "model.part"
    path.write_bytes(b"0123456789")
    with PartFile(path, report=silent) as part:
        part.cut(4)
        part.write(b"abc")
        part.cut(6)
        part.write(b"!")
        found = part.complete(tmp_path / "model", size=7, sha256="")
    assert (tmp_path / "model").read_bytes() == b"0123ab!"
    assert found == hashlib.sha256(b"0123ab!").hexdigest()
    assert not path.exists()


def test_a_wrong_size_is_told_and_the_part_deleted(tmp_path):
    path = tmp_path / "model.part"
    with PartFile(path, report=silent) as part:
        part.write(b"abc")
        with pytest.raises(WrongContentError, match="it has 3 bytes instead of 4"):
            part.complete(tmp_path / "model", size=4, sha256="")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_part_leaves_no_file(tmp_path):
    with PartFile(tmp_path / "model.part", report=silent):
        pass
    assert list(tmp_path.iterdir()) == []
