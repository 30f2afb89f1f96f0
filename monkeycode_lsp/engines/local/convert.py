"""Writes a model in another precision, by llama.cpp in a process of its own: native code that aborts takes nothing along.

Nothing half-made is ever called a model: the result grows under a temporary name beside its target and is renamed
when it is whole.  However this ends, the temporary file goes; when we are killed, the child removes it, and when that was killed too,
the next one to the same target does.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from monkeycode_lsp import folders
from monkeycode_lsp.engines.local import selftest
from monkeycode_lsp.engines.local.host.child import last_words
from monkeycode_lsp.engines.local.host.control import is_running
from monkeycode_lsp.errors import EngineUnavailableError, ModelError
from monkeycode_lsp.models import gguf
from monkeycode_lsp.models.precision import PRECISIONS, objection

Progress = Callable[[int, int], None]
"""Hears the bytes that are written and how many there will be."""

CHILD = (sys.executable, "-P", "-m", "monkeycode_lsp.engines.local.llama.quantize")
_PART = ".part"
_POLL_S = 0.2
_MARGIN, _UNEVEN_MARGIN = 1.05, 1.3
"""A file is a little larger than its weights, for the vocabulary; and the K types keep rows that do not divide by 256 in larger ones."""
_FULL_BYTES = 8 * 1024 * 1024
"""A disk with less than this left when a write failed is the reason."""


class Plan(msgspec.Struct, frozen=True):
    """One conversion that can be done."""

    source: Path
    target: Path
    precision: str
    about_bytes: int
    """Of the result, roughly."""
    header: gguf.Header


def plan(
    source: Path, precision: str, *, output: Path | None = None, force: bool = False, free_bytes: Callable[[Path], int] | None = None
) -> Plan:
    """Look whether it can and should be done.  Raises `ModelError`; `force` allows what only costs quality."""
    header = gguf.read(source)
    if header.kind == "adapter":
        raise ModelError(f"{source} is an adapter, not a model; only models can be converted.")
    target = default_target(source, precision) if output is None else output
    reason = objection(header, precision)
    if reason and not force:
        raise ModelError(reason, remedy="With --force it is done all the same.")
    if target.exists() or target.is_symlink():
        raise ModelError(f"{target} exists already and is left alone.", remedy="Remove it, or name another file with --output.")
    if not target.parent.is_dir():
        raise ModelError(f"There is no folder {target.parent}.", remedy="Create it, or name another file with --output.")
    margin = _UNEVEN_MARGIN if "_k" in precision else _MARGIN
    about_bytes = int(sum(header.elements.values()) * PRECISIONS[precision].bits / 8 * margin)
    free = (free_bytes or _free_bytes)(target.parent)
    if free < about_bytes:
        raise ModelError(
            f"The result takes about {about_bytes / 1e6:.0f} MB, and {target.parent} has {free / 1e6:.0f} MB left.",
            remedy="Make room, or name a file on another disk with --output.",
        )
    return Plan(source, target, precision, about_bytes, header)


def default_target(source: Path, precision: str) -> Path:
    """In our folder of models: other programs' folders are theirs.

    The name says what was done, because a published file of that precision is another, and better, thing.
    """
    stem = source.name.removesuffix(".gguf").replace(":", "-")
    return folders.private(folders.models()) / f"{stem}-to-{precision}.gguf"


def run(work: Plan, *, threads: int, progress: Progress | None = None, command: Sequence[str] = CHILD) -> int:
    """Do it and return the size of the result.  Raises `ModelError` or `EngineUnavailableError`; then nothing is left."""
    if command is CHILD and not selftest.is_installed():
        raise EngineUnavailableError("Converting needs the full engine (llama-cpp-python).", remedy="Run `monkeycode engine install`.")
    _sweep(work.target)
    try:
        handle, name = tempfile.mkstemp(dir=work.target.parent, prefix=f".{work.target.name}-{os.getpid()}-", suffix=_PART)
    except OSError as exc:
        raise ModelError(f"Nothing can be written to {work.target.parent}: {exc.strerror}.") from exc
    os.close(handle)
    temporary = Path(name)
    try:
        _write(work, temporary, threads, progress, command)
        _check(work, temporary)
        if work.target.exists():
            raise ModelError(f"{work.target} has come into being meanwhile and is left alone.")
        with contextlib.suppress(OSError):
            shutil.copymode(work.source, temporary)
        temporary.rename(work.target)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    return work.target.stat().st_size


def _sweep(target: Path) -> None:
    """Take away what conversions to this target left whose process is dead."""
    pattern = re.compile(rf"\.{re.escape(target.name)}-([0-9]{{1,9}})-[^-]+{re.escape(_PART)}")
    with contextlib.suppress(OSError):
        for path in target.parent.iterdir():
            if (made := pattern.fullmatch(path.name)) and not is_running(int(made[1])):
                path.unlink()


def _write(work: Plan, temporary: Path, threads: int, progress: Progress | None, command: Sequence[str]) -> None:
    arguments = [*command, str(work.source), str(temporary), f"--type={PRECISIONS[work.precision].number}", f"--threads={threads}"]
    with tempfile.TemporaryFile() as said:
        # Its stdin is held open: the child leaves, and removes the file, when it is closed, however we die.
        try:
            process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=said, stderr=said)  # noqa: S603 - our own program
        except OSError as exc:
            raise EngineUnavailableError(f"The process that converts cannot be started: {exc.strerror}.") from exc
        try:
            while process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_POLL_S)
                if progress is not None:
                    progress(min(temporary.stat().st_size, work.about_bytes), work.about_bytes)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            if process.stdin is not None:
                process.stdin.close()
        said.seek(0)
        words = last_words(said.read().decode("utf-8", "replace").splitlines())
    if process.returncode:
        raise _failed(work, process.returncode, words)


def _check(work: Plan, temporary: Path) -> None:
    """Refuse a result that is not the whole model."""
    made = gguf.read(temporary)
    if sum(made.elements.values()) != sum(work.header.elements.values()):
        raise ModelError(f"llama.cpp did not write all of {work.source.name}; the result was thrown away.")


def _failed(work: Plan, status: int, words: str) -> ModelError:
    if _free_bytes(work.target.parent) < _FULL_BYTES:
        return ModelError(f"The disk is full: {work.target.parent} has no room for the result.", remedy="Make room and try again.")
    how = f"was stopped by signal {-status}" if status < 0 else "could not do it"
    return ModelError(f"llama.cpp {how}: {words or f'exit status {status}'}", remedy="`monkeycode model verify` checks the source.")


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free
