"""Receipts: which file was checked, and its SHA-256, so that gigabytes are not read again at every start.

A receipt lies beside our models and holds for one file of one size and modification time, ours or another
program's that we use where it is.  A file without a valid receipt is not wrong, only unchecked.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from monkeycode_lsp.errors import ModelError

_BLOCK = 1 << 20


class Receipt(msgspec.Struct, frozen=True):
    """What was checked."""

    path: str
    bytes: int
    modified_ns: int
    sha256: str


def _file(folder: Path, name: str) -> Path:
    return folder / ".receipts" / f"{name}.json"


def write(folder: Path, name: str, path: Path, sha256: str) -> None:
    """Note that `path` is what `name` stands for."""
    stat = path.stat()
    receipt = Receipt(path=str(path), bytes=stat.st_size, modified_ns=stat.st_mtime_ns, sha256=sha256)
    place = _file(folder, name)
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = place.with_name(f"{place.name}.{os.getpid()}")
    draft.write_bytes(msgspec.json.encode(receipt))
    draft.replace(place)


def read(folder: Path, name: str) -> Receipt | None:
    """The receipt, if its file is still what was checked."""
    try:
        receipt = msgspec.json.decode(_file(folder, name).read_bytes(), type=Receipt)
        stat = Path(receipt.path).stat()
    except (OSError, msgspec.DecodeError):
        return None
    unchanged = stat.st_size == receipt.bytes and stat.st_mtime_ns == receipt.modified_ns
    return receipt if unchanged else None


def remove(folder: Path, name: str) -> None:
    """Forget it."""
    with contextlib.suppress(FileNotFoundError):
        _file(folder, name).unlink()


def sha256(path: Path, report: Callable[[int, int], None] | None = None) -> str:
    """The file's hash; `report` hears bytes done and in all, and may raise to stop."""
    digest = hashlib.sha256()
    done = 0
    try:
        total = path.stat().st_size
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
                done += len(block)
                if report is not None:
                    report(done, total)
    except OSError as exc:
        raise ModelError(f"The model file {path} cannot be read: {exc.strerror or exc}.") from exc
    return digest.hexdigest()
