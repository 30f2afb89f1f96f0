from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import msgspec
import pytest

from monkeycode_lsp.errors import DownloadError
from monkeycode_lsp.models import lock, pull, receipt
from monkeycode_lsp.models.part import NotHereError, UnreachableError
from monkeycode_lsp.models.sources.hub import Hub
from monkeycode_lsp.models.sources.local_files import LocalFiles, Places
from tests.unit.models import samples

CONTENT = samples.CONTENT
ENTRY = samples.entry()

PULL_IN_A_PROCESS = """
import sys
from pathlib import Path
import msgspec
from monkeycode_lsp.models import pull
from monkeycode_lsp.models.catalogue import Entry
from monkeycode_lsp.models.sources.hub import Hub

url, folder, entry = sys.argv[1:]
last = ""

def progress(stage, done, total):
    global last
    if stage != last:
        last = stage
        print(stage, flush=True)

path = pull.pull(
    msgspec.json.decode(entry, type=Entry), progress=progress, folder=Path(folder), sources=[Hub(mirror=url, environ={"HF_HOME": folder})]
)
print("DONE", path, flush=True)
"""


class Says:
    """A source that answers with one sentence, or puts the right file down."""

    def __init__(self, name: str, error: Exception | None = None, content: bytes = CONTENT) -> None:
        self.name = name
        self.error = error
        self.content = content
        self.n_asked = 0

    def deliver(self, job):
        self.n_asked += 1
        if self.error:
            raise self.error
        with job.open_part() as part:
            part.write(self.content)
            return job.complete(part, size=None, sha256=job.entry.sha256)


def test_the_first_source_that_has_it_ends_the_search(tmp_path, heard):
    first, second, third = Says("one", DownloadError("no")), Says("two"), Says("three")
    assert pull.pull(ENTRY, progress=heard, sources=[first, second, third], folder=tmp_path).read_bytes() == CONTENT
    assert (first.n_asked, second.n_asked, third.n_asked) == (1, 1, 0)


class Wavers(Says):
    """A source that counts a piece when it arrives, and once more from its start when it is written out."""

    def deliver(self, job):
        for share in (0.0, 0.5, 0.25, 0.5, 1.0, 0.5):
            job.progress("Downloading", int(share * len(CONTENT)), len(CONTENT))
        return super().deliver(job)


def test_progress_never_goes_back_within_a_source_or_from_one_to_the_next(tmp_path, heard):
    (tmp_path / f"{ENTRY.file}.part").write_bytes(CONTENT[:1000])
    sources = [Wavers("one", DownloadError("no")), Wavers("two", content=CONTENT[1000:])]
    pull.pull(ENTRY, progress=heard, sources=sources, folder=tmp_path)
    done = [done for _, done, total in heard.calls if total is not None]
    assert "Checking what is already here" in heard.stages
    assert len(set(done)) > 2
    assert done == sorted(done)


def test_when_none_has_it_the_error_lists_what_each_said(tmp_path, heard):
    sources = [Says("the attic", DownloadError("is empty.")), Says("the shop", DownloadError("is closed.", remedy="Come back tomorrow."))]
    with pytest.raises(DownloadError) as caught:
        pull.pull(ENTRY, progress=heard, sources=sources, folder=tmp_path)
    assert caught.value.message == "No source delivered Tiny-Coder-0.1B Q4_K_M. the attic: is empty; the shop: is closed."
    assert caught.value.remedy.startswith("Come back tomorrow. Check the network")
    assert str(tmp_path) in caught.value.remedy


def test_a_file_that_is_here_is_not_asked_for(tmp_path, heard):
    pull.pull(ENTRY, progress=heard, sources=[Says("one")], folder=tmp_path)
    unwanted = Says("two")
    heard.calls.clear()
    assert pull.pull(ENTRY, progress=heard, sources=[unwanted], folder=tmp_path) == tmp_path / ENTRY.file
    assert unwanted.n_asked == 0
    assert heard.calls == []  # its receipt is enough: it is not read again


def test_a_file_that_the_user_put_there_is_checked_once(tmp_path, heard):
    (tmp_path / ENTRY.file).write_bytes(CONTENT)
    unwanted = Says("one")
    assert pull.pull(ENTRY, progress=heard, sources=[unwanted], folder=tmp_path) == tmp_path / ENTRY.file
    assert heard.stages == ["Checking the file that is here"]
    assert receipt.read(tmp_path, ENTRY.file).sha256 == ENTRY.sha256


def test_a_damaged_file_is_set_aside_and_replaced(tmp_path, heard):
    (tmp_path / ENTRY.file).write_bytes(b"rotten")
    assert pull.pull(ENTRY, progress=heard, sources=[Says("one")], folder=tmp_path).read_bytes() == CONTENT
    assert (tmp_path / f"{ENTRY.file}.damaged").read_bytes() == b"rotten"


def test_a_file_that_changed_since_its_receipt_is_checked_again(tmp_path, heard):
    path = pull.pull(ENTRY, progress=heard, sources=[Says("one")], folder=tmp_path)
    path.write_bytes(b"?" * len(CONTENT))
    os.utime(path, ns=(0, 0))
    again = Says("two")
    assert pull.pull(ENTRY, progress=heard, sources=[again], folder=tmp_path).read_bytes() == CONTENT
    assert again.n_asked == 1


def test_a_folder_that_cannot_be_made_is_said_in_words(tmp_path, heard):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DownloadError, match="cannot be written"):
        pull.pull(ENTRY, progress=heard, sources=[Says("one")], folder=tmp_path / "file" / "models")


def test_the_folder_is_for_this_user_only(tmp_path, heard):
    pull.pull(ENTRY, progress=heard, sources=[Says("one")], folder=tmp_path / "models")
    if os.name == "posix":
        assert (tmp_path / "models").stat().st_mode & 0o077 == 0


def test_two_pulls_at_once_download_one_file(hub_server, tmp_path):
    hub_server.hold_after = 100_000
    argv = [sys.executable, "-c", PULL_IN_A_PROCESS, hub_server.url, str(tmp_path), msgspec.json.encode(ENTRY).decode()]
    both = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    lines: list[list[str]] = [[], []]
    somebody_waits = threading.Event()

    def read(n: int) -> None:
        for line in both[n].stdout:
            lines[n].append(line.strip())
            if line.startswith("Waiting for another download"):
                somebody_waits.set()

    readers = [threading.Thread(target=read, args=(n,)) for n in range(2)]
    for reader in readers:
        reader.start()
    assert somebody_waits.wait(60)
    hub_server.release.set()
    for reader in readers:
        reader.join(60)
    assert [process.wait(60) for process in both] == [0, 0]
    for process in both:
        process.stdout.close()
    assert {line for said in lines for line in said if line.startswith("DONE")} == {f"DONE {tmp_path / ENTRY.file}"}
    assert len(hub_server.transfers) == 1
    assert (tmp_path / ENTRY.file).read_bytes() == CONTENT


def test_a_killed_pull_frees_the_lock_and_leaves_its_part(hub_server, tmp_path, heard):
    hub_server.hold_after = 200_000
    argv = [sys.executable, "-c", PULL_IN_A_PROCESS, hub_server.url, str(tmp_path), msgspec.json.encode(ENTRY).decode()]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if line.startswith("Downloading"):
                break
        process.kill()
    hub_server.release.set()
    hub_server.hold_after = None
    hub = Hub(mirror=hub_server.url, environ={"HF_HOME": str(tmp_path)})
    assert pull.pull(ENTRY, progress=heard, sources=[hub], folder=tmp_path).read_bytes() == CONTENT
    assert "Waiting for another download of this model" not in heard.stages


def test_waiting_for_the_lock_can_be_given_up(tmp_path):
    class GivenUp(Exception):  # noqa: N818 - a stop, not an error
        pass

    def give_up() -> None:
        raise GivenUp

    with lock.held(tmp_path / "lock", waiting=give_up), pytest.raises(GivenUp), lock.held(tmp_path / "lock", waiting=give_up):
        pass
    with lock.held(tmp_path / "lock", waiting=give_up):
        pass  # free again


def test_a_file_of_another_program_is_linked_not_downloaded(tmp_path, heard):
    theirs = tmp_path / "theirs" / "publisher" / "repository" / ENTRY.file
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(CONTENT)
    unwanted = Says("the hub")
    sources = [LocalFiles(Places(folders=(tmp_path / "theirs",))), unwanted]
    path = pull.pull(ENTRY, progress=heard, sources=sources, folder=tmp_path / "models")
    assert path == tmp_path / "models" / ENTRY.file
    assert path.samefile(theirs)
    assert unwanted.n_asked == 0


def test_a_blob_is_found_by_the_hash_in_its_name(tmp_path, heard):
    blob = tmp_path / "ollama" / "blobs" / f"sha256-{ENTRY.sha256}"
    blob.parent.mkdir(parents=True)
    blob.write_bytes(CONTENT)
    path = pull.pull(ENTRY, progress=heard, sources=[LocalFiles(Places(ollama=(tmp_path / "ollama",)))], folder=tmp_path / "models")
    assert path.samefile(blob)


def test_a_renamed_copy_is_found_by_its_size_and_hash(tmp_path, heard):
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "another-name.gguf").write_bytes(CONTENT)
    assert pull.pull(ENTRY, progress=heard, sources=[LocalFiles(Places())], folder=folder).read_bytes() == CONTENT


def test_a_file_of_the_right_size_and_name_with_other_content_is_not_used(tmp_path, heard):
    theirs = tmp_path / "theirs" / ENTRY.file
    theirs.parent.mkdir()
    theirs.write_bytes(b"?" * len(CONTENT))
    with pytest.raises(DownloadError, match="files on this machine: none of them is this model"):
        pull.pull(ENTRY, progress=heard, sources=[LocalFiles(Places(folders=(theirs.parent,)))], folder=tmp_path / "models")
    assert theirs.read_bytes() == b"?" * len(CONTENT)


def test_without_a_pinned_hash_a_whole_model_of_that_name_is_used(tmp_path, heard):
    entry = samples.entry(bytes=None, sha256="", approximate_bytes=1000)
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / f"a-{entry.file}").write_bytes(b"no model")
    (theirs / f"b-{entry.file}").write_bytes(samples.gguf())
    path = pull.pull(entry, progress=heard, sources=[LocalFiles(Places(folders=(theirs,)))], folder=tmp_path / "models")
    assert path.samefile(theirs / f"b-{entry.file}")
    assert receipt.read(tmp_path / "models", entry.file).sha256 == hashlib.sha256(samples.gguf()).hexdigest()


def test_a_file_on_another_disk_is_used_where_it_is(tmp_path, heard):
    other_disk = Path("/dev/shm")
    if not other_disk.is_dir() or other_disk.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("needs two file systems")
    with tempfile.TemporaryDirectory(dir=other_disk) as there:
        theirs = Path(there) / ENTRY.file
        theirs.write_bytes(CONTENT)
        sources = [LocalFiles(Places(folders=(Path(there),)))]
        assert pull.pull(ENTRY, progress=heard, sources=sources, folder=tmp_path / "models") == theirs
        heard.calls.clear()
        assert pull.pull(ENTRY, progress=heard, sources=[], folder=tmp_path / "models") == theirs
        assert heard.calls == []
        assert not (tmp_path / "models" / ENTRY.file).exists()


def test_the_user_hears_once_that_another_source_is_asked(tmp_path, heard):
    sources = [
        Says("files", NotHereError("none of them.")), Says("the hub", UnreachableError("cannot be reached: -2.")),
        Says("the shop"),
    ]  # fmt: skip
    sources[2].deliver = lambda job: (job.progress("Downloading", 1, 2), job.progress("Downloading", 2, 2), job.target)[2]
    pull.pull(ENTRY, progress=heard, sources=sources, folder=tmp_path)
    assert heard.calls[0] == ("The hub does not answer; taking it from the shop.", 0, None)
    assert heard.stages[1:] == ["Downloading"]


def test_what_is_simply_not_here_is_no_news(tmp_path, heard):
    sources = [Says("files", NotHereError("none of them.")), Says("the hub", DownloadError("no"))]
    with pytest.raises(DownloadError):
        pull.pull(ENTRY, progress=heard, sources=sources, folder=tmp_path)
    assert heard.stages == []
