"""From a server's name to its numeric addresses: by this module alone, because the event loop would ask on its shared threads."""

from __future__ import annotations

import socket

_MOST = 4


def resolve(host: str) -> list[str]:
    """Blocking, for as long as the name service likes.  The best first; none where the name is not known."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        numbers = [socket.getnameinfo(place, socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)[0] for *_, place in found]
    except (OSError, UnicodeError):  # the second: a name that can be none
        return []
    return list(dict.fromkeys(numbers))[:_MOST]
