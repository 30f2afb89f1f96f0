"""Who is at the other end of a Unix socket, as the system knows it: nobody can pretend."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys
from typing import NamedTuple

ELSEWHERE = 0
"""In place of the number of a process that has none here: it runs in another container."""
_SOL_LOCAL, _LOCAL_PEERCRED, _LOCAL_PEERPID = 0, 1, 2
_XUCRED_BYTES = 76


class Peer(NamedTuple):
    """One process."""

    user: int
    pid: int | None
    """None where the system does not tell; `ELSEWHERE`: what it says of itself is the number of some other process here."""

    @property
    def is_ours(self) -> bool:
        """Whether it runs as the user that we run as."""
        return sys.platform == "win32" or self.user == os.geteuid()


def peer_of(connection: socket.socket) -> Peer | None:
    """The process at the other end; None where the system does not tell."""
    if sys.platform == "win32" or connection.family != socket.AF_UNIX:
        return None
    with contextlib.suppress(OSError, struct.error):
        if sys.platform == "linux":
            pid, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            return Peer(user, pid)
        if sys.platform == "darwin":
            _, user = struct.unpack_from("II", connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED_BYTES))
            return Peer(user, connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID))
    return None
