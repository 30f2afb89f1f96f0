"""From a server's name to its numeric addresses, on threads of our own.

The event loop would ask on its shared threads, and those are waited for when the process ends: a name
service that hangs would keep it alive.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from typing import Any

from monkeycode_lsp import threads
from monkeycode_lsp.engines.remote.address import is_loopback

_MOST = 6


class Names:
    """Looks names up, each on one thread at a time.

    The mutable state is what is being looked up; it changes in `resolve` and `close`.
    """

    def __init__(self, look_up: Callable[[str], list[str]] | None = None) -> None:
        self._look_up = look_up or _look_up
        self._asked: dict[str, asyncio.Task[list[str]]] = {}

    async def resolve(self, host: str) -> list[str]:
        """The best address first.  Raises `OSError` where the name is not known."""
        if _is_number(host):
            return [host]
        asked = self._asked.get(host)
        if asked is None:
            asked = self._asked[host] = asyncio.create_task(threads.run(f"name {host}", lambda: self._look_up(host)))
            asked.add_done_callback(lambda task: self._answered(host, task))
        return await asyncio.shield(asked)

    def close(self) -> None:
        """Wait for none of them."""
        for asked in self._asked.values():
            asked.cancel()

    def _answered(self, host: str, task: asyncio.Task[list[str]]) -> None:
        self._asked.pop(host, None)
        if not task.cancelled():
            task.exception()  # whoever waited may have gone


def is_here(number: str) -> bool:
    """Whether a numeric address is one of this machine's own.  No packet is sent."""
    if is_loopback(number):
        return True
    try:
        with socket.socket(socket.AF_INET6 if ":" in number else socket.AF_INET, socket.SOCK_DGRAM) as ours:
            ours.bind(socket.getaddrinfo(number, 0, flags=socket.AI_NUMERICHOST)[0][4])  # the system lends nobody another's address
    except OSError:
        return False
    return True


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _look_up(host: str) -> list[str]:
    try:
        found = _found(host)
        numbers = [socket.getnameinfo(place, socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)[0] for *_, place in found]
    except UnicodeError as exc:  # a name that can be none
        raise OSError(str(exc)) from None
    return list(dict.fromkeys(numbers))[:_MOST]


def _found(host: str) -> list[tuple[Any, ...]]:
    try:
        return list(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM))
    except OSError:
        if not host.endswith("."):
            raise
        return list(
            socket.getaddrinfo(host.rstrip("."), None, type=socket.SOCK_STREAM)
        )  # lists of hosts know no name with a dot at its end
