"""KV states on disk, so that a process that starts is warm.  Off unless the user wants it: they hold the text of documents.

One file a state, readable by the user only: a header (what it holds) and the bytes that the library gave.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import tempfile
import time
from array import array
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from monkeycode_lsp import folders
from monkeycode_lsp.engines.local.batch.shelf import Entry

logger = logging.getLogger(__name__)

_SUFFIX = ".kv"
_LENGTH_BYTES = 4
_MOST_HEADER_BYTES = 4 * 1024 * 1024
_MOST_AGE_S = 7 * 86_400


class _Header(msgspec.Struct, frozen=True):
    scope: str
    """Model, build and settings: a state means nothing under others."""
    tokens: tuple[int, ...]
    n_bytes: int
    digest: bytes
    """Of tokens and bytes: the library takes damaged ones without a word."""


def read(folder: Path, scope: str) -> list[Entry]:
    """The states of this scope, oldest first; their bytes are read when they are needed.  What is damaged is removed."""
    found = []
    for path in sorted(folder.glob(f"*{_SUFFIX}"), key=_age):
        header = _header(path)
        if header is None:
            with contextlib.suppress(OSError):
                path.unlink()
        elif header.scope == scope:
            found.append(Entry(header.tokens, header.n_bytes, partial(_state, path, header)))
    return found


def write(folder: Path, scope: str, entries: Iterable[Entry], *, most_bytes: int) -> None:
    """Keep these states and no others of the scope, as far as they fit, the first ones first.  A full disk costs them, and no more."""
    ours = {path for path in folder.glob(f"*{_SUFFIX}") if (header := _header(path)) is None or header.scope == scope}
    kept: list[tuple[Entry, bytes]] = []
    for entry in entries:
        # Loaded now: some of them lie in the files that go next.
        state = entry.load() if entry.n_bytes <= most_bytes else None
        if state is not None:
            kept.append((entry, state))
            most_bytes -= entry.n_bytes
    for path in ours:
        with contextlib.suppress(OSError):
            path.unlink()
    _prune(folder)
    try:
        folders.private(folder)
        for entry, state in reversed(kept):
            _write(folder, _Header(scope, tuple(entry.tokens), len(state), _digest(entry.tokens, state)), state)
    except OSError as exc:
        logger.warning("KV states could not be kept on disk: %s.", exc.strerror)


def _write(folder: Path, header: _Header, state: bytes) -> None:
    data = msgspec.msgpack.encode(header)
    handle, temporary = tempfile.mkstemp(dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(len(data).to_bytes(_LENGTH_BYTES, "big") + data)
            file.write(state)
        Path(temporary).replace(Path(temporary).with_suffix(_SUFFIX))
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _header(path: Path) -> _Header | None:
    """What a file says that it holds; None: it is damaged."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(_LENGTH_BYTES), "big")
            if length > _MOST_HEADER_BYTES:
                return None
            header = msgspec.msgpack.decode(file.read(length), type=_Header)
        return header if path.stat().st_size == _LENGTH_BYTES + length + header.n_bytes else None
    except (OSError, msgspec.MsgspecError):
        return None


def _state(path: Path, header: _Header) -> bytes | None:
    try:
        data = path.read_bytes()
    except OSError:
        return None
    state = data[-header.n_bytes :]
    return state if _digest(header.tokens, state) == header.digest else None


def _prune(folder: Path) -> None:
    """Take away what nobody has come back to for long, and what was never finished."""
    for path in folder.glob("*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _MOST_AGE_S:
                path.unlink()


def _digest(tokens: Sequence[int], state: bytes) -> bytes:
    return hashlib.blake2b(array("q", tokens).tobytes() + state, digest_size=16).digest()


def _age(path: Path) -> float:
    with contextlib.suppress(OSError):
        return path.stat().st_mtime
    return 0.0
