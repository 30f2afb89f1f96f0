"""Where an engine process and its clients meet: a private Unix socket, or loopback and a token where there is none.

Either way one path in a folder of mode 0700 stands for it: the socket itself, or a file that holds
the port and the token.  Whoever cannot read the folder cannot talk to the engine.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import stat
import tempfile
from pathlib import Path

import msgspec

from monkeycode_lsp import folders

LOOPBACK = os.name == "nt"
"""Whether this system needs the loopback kind."""
_LONGEST_SOCKET_PATH = 100
"""Unix sockets are named by at most 104 bytes on some systems."""

_TEMPORARY = "monkeycode-engine-"
_SOCKET = "engine.sock"
_SHALLOW = ("/tmp", "/var/tmp")  # noqa: S108 - only as the parents of a private folder with a name of its own


class Note(msgspec.Struct, frozen=True):
    """What the file of the loopback kind holds."""

    port: int
    token: str


def new_path() -> Path:
    """A fresh name in our private folder, or in a private temporary one where that is too deep."""
    with contextlib.suppress(OSError):  # a home that cannot be written
        path = folders.private(folders.runtime()) / f"engine-{os.getpid()}-{secrets.token_hex(4)}.sock"
        if _fits(path) and os.access(path.parent, os.W_OK):
            return path
    return Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=_temporary())) / _SOCKET


def _temporary() -> str:
    """The folder for temporary files, or a system's own where that is too deep."""
    found = tempfile.gettempdir()
    longest = f"{_TEMPORARY}12345678"
    return next((folder for folder in (found, *_SHALLOW) if _fits(Path(folder, longest, _SOCKET)) and os.access(folder, os.W_OK)), found)


def _fits(path: Path) -> bool:
    return len(os.fsencode(path)) <= _LONGEST_SOCKET_PATH


def listen(path: Path, *, loopback: bool) -> tuple[socket.socket, str]:
    """A listening socket, reachable through `path`, and the token that clients must show."""
    if not loopback:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        mask = os.umask(0o177)
        try:
            listener.bind(os.fspath(path))
        finally:
            os.umask(mask)
        listener.listen()
        return listener, ""
    listener = socket.create_server(("127.0.0.1", 0))
    token = secrets.token_hex(32)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(msgspec.json.encode(Note(listener.getsockname()[1], token)))
    return listener, token


async def connect(path: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, str]:
    """A connection to whoever listens at `path`, and the token to show.  Raises `OSError`."""
    note = _note(path)
    if note is None:
        reader, writer = await asyncio.open_unix_connection(path)
        return reader, writer, ""
    reader, writer = await asyncio.open_connection("127.0.0.1", note.port)
    return reader, writer, note.token


def remove(path: Path) -> None:
    """Take away what `listen` and `new_path` made; may be called by both sides."""
    path.unlink(missing_ok=True)
    if path.parent.name.startswith(_TEMPORARY):
        with contextlib.suppress(OSError):
            path.parent.rmdir()


def _note(path: Path) -> Note | None:
    """What the file of the loopback kind says; None: it is a Unix socket."""
    if stat.S_ISSOCK(path.stat().st_mode):
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=Note)
    except msgspec.MsgspecError as exc:
        raise ConnectionRefusedError(f"{path} does not name an engine process") from exc
