"""Where an engine process and its clients meet: a private Unix socket, or loopback and a token where there is none.

Either way one path in a folder of mode 0700 stands for it: the socket itself, or a file that holds the port and
the token.  Its name follows from what the process does, so that all servers of a user find the same one.
Whoever cannot read the folder cannot talk to the engine; on a Unix socket both sides also look who the other is.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import secrets
import socket
import stat
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

import msgspec

from monkeycode_lsp import folders
from monkeycode_lsp.engines.local.host.peers import Peer, peer_of
from monkeycode_lsp.errors import EngineUnavailableError

logger = logging.getLogger(__name__)

LOOPBACK = os.name == "nt"
"""Whether this system needs the loopback kind."""
CANNOT_LISTEN = 4
"""Exit status of a process that no client can ever reach."""
_LONGEST_SOCKET_PATH = 100
"""Unix sockets are named by at most 104 bytes on some systems."""
_ACCEPT_PAUSE_S = 0.1
_PREFIX = "engine-"
_LONGEST_NAME = f"{_PREFIX}0123456789ab.sock"
_SHALLOW = ("/tmp", "/var/tmp")  # noqa: S108 - only as the parents of a private folder with a name of its own


class Address(msgspec.Struct, frozen=True):
    """What the file of the loopback kind holds."""

    port: int
    token: str


@dataclass(frozen=True)
class Place:
    """The files of one engine process, which share a name."""

    socket: Path

    @property
    def key(self) -> str:
        """What tells it from others."""
        return self.socket.stem.removeprefix(_PREFIX)

    @property
    def note(self) -> Path:
        """Says which process it is; see `registry`."""
        return self.socket.with_suffix(".json")

    @property
    def lock(self) -> Path:
        """Held by whoever starts it or clears up after it; see `startlock`."""
        return self.socket.with_suffix(".lock")


def place(key: str) -> Place:
    """Where the process of this key is or would be.  Blocking.  Raises `EngineUnavailableError`, see `folder`."""
    return Place(folder() / f"{_PREFIX}{key}.sock")


def places() -> list[Place]:
    """Every place that something is noted of.  Blocking.  Raises `EngineUnavailableError`, see `folder`."""
    parent = folder()
    names: list[str] = []
    with contextlib.suppress(OSError):  # it has just been taken away
        names = sorted(os.listdir(parent))  # noqa: PTH208 - a folder that is gone raises here, not at some later step
    found = [Place((parent / name).with_suffix(".sock")) for name in names if name.startswith(_PREFIX) and name.endswith(".json")]
    if not found:
        _tidy(parent)
    return found


def folder() -> Path:
    """The user's private folder, or one for temporary files where that is too deep or cannot be written.

    The same one for every process of the user.  Raises `EngineUnavailableError` where others could change it.
    """
    wanted = folders.runtime()
    with contextlib.suppress(OSError):  # a home that cannot be written
        folders.private(wanted)
        if not folders.is_private(wanted):
            raise EngineUnavailableError(
                f"The folder {wanted} is not private, so nothing is started from it.",
                remedy="It must be a folder of your own with mode 700: remove it, and it is made anew.",
            )
        if _fits(wanted) and os.access(wanted, os.W_OK):
            return wanted
    name = f"monkeycode-{_user()}-{hashlib.sha256(os.fsencode(wanted)).hexdigest()[:8]}"
    for parent in (*(_SHALLOW if os.name == "posix" else ()), None):
        with contextlib.suppress(OSError):
            found = Path(parent or tempfile.gettempdir(), name)
            found.mkdir(mode=0o700, exist_ok=True)
            if folders.is_private(found) and _fits(found) and os.access(found, os.W_OK):
                return found
    raise EngineUnavailableError(
        "There is no private folder for the engine's socket.", remedy="Set MONKEYCODE_HOME to a folder that can be written."
    )


class Door:
    """A listening socket, reachable through `path`, and the token that clients must show."""

    def __init__(self, path: Path, *, loopback: bool) -> None:
        """Raises `OSError`."""
        # The mutable state is whether it is closed; it changes in `close` only.
        self.path = path
        self.token = ""
        self._closed = threading.Event()
        if loopback:
            self.listener = socket.create_server(("127.0.0.1", 0))
            self.token = secrets.token_hex(32)
            _write(path, msgspec.json.encode(Address(self.listener.getsockname()[1], self.token)))
            return
        if sys.platform == "win32":
            raise OSError("there are no sockets with a path here")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        mask = os.umask(0o177)
        try:
            self.listener.bind(os.fspath(path))
        finally:
            os.umask(mask)
        self.listener.listen(socket.SOMAXCONN)

    def accept(self) -> socket.socket | None:
        """The next connection of a process of ours; None: the door is closed."""
        is_complaint_new = True
        while not self._closed.is_set():
            try:
                connection, _ = self.listener.accept()
            except OSError as exc:
                # A client that went at once, too many files open, no memory: none of them lasts.
                if not self._closed.wait(_ACCEPT_PAUSE_S) and is_complaint_new:
                    is_complaint_new = False
                    logger.warning("A connection cannot be accepted now: %s.", exc.strerror or exc)
                continue
            peer = peer_of(connection)
            if peer is None or peer.is_ours:
                return connection
            connection.close()
        return None

    def close(self) -> None:
        """Let nobody in any more.  The path is freed first: as long as somebody answers there, nobody else takes it."""
        if not self._closed.is_set():
            self._closed.set()
            remove(self.path)
            with contextlib.suppress(OSError):
                self.listener.shutdown(socket.SHUT_RDWR)  # wakes whoever accepts
            self.listener.close()


@dataclass(frozen=True)
class Connection:
    """A client's end."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    token: str
    """What it must show."""
    peer: Peer | None


async def connect(path: Path) -> Connection:
    """A connection to whoever listens at `path`.  Raises `OSError`."""
    address = await asyncio.to_thread(_address, path)
    if address is not None:
        reader, writer = await asyncio.open_connection("127.0.0.1", address.port)
        return Connection(reader, writer, address.token, None)
    if sys.platform == "win32":
        raise ConnectionRefusedError(f"{path} does not name an engine process")
    reader, writer = await asyncio.open_unix_connection(path)
    peer = peer_of(writer.get_extra_info("socket"))
    if peer is not None and not peer.is_ours:
        writer.transport.abort()
        raise PermissionError(f"{path} belongs to another user's process")
    return Connection(reader, writer, "", peer)


def remove(path: Path) -> None:
    """Take away a file of a place, and a temporary folder that is empty then."""
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
    _tidy(path.parent)


def in_the_way(place: Place) -> Path | None:
    """What lies where a file of the place belongs and cannot be one.  Blocking."""
    for path in (place.socket, place.note, place.lock):
        with contextlib.suppress(OSError):
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode) or (path == place.lock and not stat.S_ISREG(mode)):
                return path
    return None


def _tidy(parent: Path) -> None:
    """A temporary folder goes with the last file in it."""
    if parent != folders.runtime():
        with contextlib.suppress(OSError):
            parent.rmdir()


def _address(path: Path) -> Address | None:
    """What the file of the loopback kind says; None: it is a Unix socket."""
    mode = path.lstat().st_mode
    if stat.S_ISSOCK(mode):
        return None
    try:
        # Of anything else but a file, such as a named pipe, reading might never end.
        return msgspec.json.decode(path.read_bytes() if stat.S_ISREG(mode) else b"", type=Address)
    except (msgspec.MsgspecError, RecursionError) as exc:
        raise ConnectionRefusedError(f"{path} does not name an engine process") from exc


def _write(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
    except OSError:
        path.unlink()
        raise


def _fits(parent: Path) -> bool:
    return len(os.fsencode(parent / _LONGEST_NAME)) <= _LONGEST_SOCKET_PATH


def _user() -> str:
    if sys.platform == "win32":
        return ""
    return str(os.geteuid())
