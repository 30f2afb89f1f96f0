"""Opens wires to one server, through its proxy where there is one: name, TCP, tunnel and TLS in one go.

A wire needs nothing more, so one can be opened before it is needed, and every step can be cancelled
without leaving a socket behind.  No proxy is ever asked for this machine, whatever name it goes by.
"""

from __future__ import annotations

import asyncio
import ssl

import h11
import msgspec

from monkeycode_lsp.engines.remote.address import is_loopback
from monkeycode_lsp.engines.remote.http import faults
from monkeycode_lsp.engines.remote.http.names import Names, is_here
from monkeycode_lsp.engines.remote.http.proxy import Proxy
from monkeycode_lsp.engines.remote.http.wires import Wire

_STAGGER_S = 0.25
"""How long an address of a name is tried alone before the next is tried beside it."""
_LOOK_S = 1.0
"""Longest look for a name that a proxy would look up otherwise: this machine's own names need no time."""
_PIECE = 65_536


class Route(msgspec.Struct, frozen=True):
    """The way to a server."""

    host: str
    port: int
    name: str = ""
    """The host as its certificate has it."""
    context: ssl.SSLContext | None = None
    """For TLS with the server; None: not encrypted."""
    via: Proxy | None = None
    via_context: ssl.SSLContext | None = None
    """For TLS with the proxy."""


class Network:
    """Opens wires along one route.

    The mutable state is the route, which loses its proxy if the server turns out to be this machine, and where
    the last wire led; it changes in `_settle` and `open` only.
    """

    def __init__(self, route: Route, *, within_s: float, names: Names | None = None) -> None:
        self._route = route
        self._within_s = within_s
        self._names = names or Names()
        self.is_here = route.via is None and is_loopback(route.host)
        """Whether the last wire led to this machine; before the first, whether the host can be nothing else."""
        self._settled = route.via is None
        self._settling = asyncio.Lock()

    @property
    def via(self) -> Proxy | None:
        """The proxy that wires pass; certain once a wire was opened."""
        return self._route.via

    async def open(self) -> Wire:
        """A new wire.  Raises a `Fault` for what does not connect."""
        await self._settle()
        route, wire = self._route, None
        try:
            async with asyncio.timeout(self._within_s):
                wire = await self._tcp()
                if route.via is not None:
                    await self._pass(wire, route.via)
                if route.context is not None:
                    await wire.secure(route.context, route.name or route.host, self._within_s)
                wire.is_here = self.is_here = route.via is None and is_loopback(str((wire.get_extra_info("peername") or ("",))[0]))
        except BaseException as exc:
            if wire is not None:
                wire.abort()
            if isinstance(exc, TimeoutError):
                raise (faults.ConnectTimeoutError if route.via is None else faults.ProxyError) from exc
            if isinstance(exc, OSError | ValueError):
                raise faults.ConnectError from exc
            raise
        return wire

    def close(self) -> None:
        """Forget any name that is being looked up."""
        self._names.close()

    async def _settle(self) -> None:
        async with self._settling:
            if self._settled:
                return
            try:
                async with asyncio.timeout(_LOOK_S):
                    numbers = await self._names.resolve(self._route.host)
            except (OSError, TimeoutError):  # only the proxy knows it, as is usual behind one
                numbers = []
            if numbers and all(is_here(number) for number in numbers):
                self._route = msgspec.structs.replace(self._route, via=None, via_context=None)
            self._settled = True

    async def _tcp(self) -> Wire:
        via = self._route.via
        host, port = (self._route.host, self._route.port) if via is None else (via.host, via.port)
        try:
            return await _first(await self._names.resolve(host), port)
        except OSError as exc:
            if via is not None and not isinstance(exc, TimeoutError):
                raise faults.ProxyError from exc
            raise

    async def _pass(self, wire: Wire, via: Proxy) -> None:
        """Get past the proxy: encrypted where it wants that, and by a tunnel to a server that we speak TLS with."""
        if self._route.via_context is not None:
            try:
                await wire.secure(self._route.via_context, via.host, self._within_s)
            except (OSError, ValueError) as exc:
                raise faults.ProxyError from exc
        if self._route.context is not None:
            await _tunnel(wire, self._route, via.authorization)


async def _tunnel(wire: Wire, route: Route, authorization: str) -> None:
    target = f"[{route.host}]:{route.port}" if ":" in route.host else f"{route.host}:{route.port}"
    headers = [("Host", target), *([("Proxy-Authorization", authorization)] if authorization else [])]
    http = h11.Connection(h11.CLIENT)
    try:
        for event in (h11.Request(method="CONNECT", target=target, headers=headers), h11.EndOfMessage()):
            wire.put(http.send(event) or b"")
        while (reply := http.next_event()) is h11.NEED_DATA or isinstance(reply, h11.InformationalResponse):
            if reply is h11.NEED_DATA:
                http.receive_data(await wire.read(_PIECE))
    except (h11.ProtocolError, faults.NetworkError, UnicodeError) as exc:
        raise faults.ProxyError from exc
    status = reply.status_code if isinstance(reply, h11.Response) else 0
    if status not in range(200, 300):
        raise faults.ProxyError(status)
    if http.trailing_data[0]:  # nobody has asked the server anything yet
        raise faults.ProxyError


async def _first(numbers: list[str], port: int) -> Wire:
    """A wire to whichever address answers first; each gets a small start over the next.  Raises the last `OSError`."""
    if len(numbers) == 1:
        return await _wire(numbers[0], port)
    tries: set[asyncio.Task[Wire]] = set()
    error = OSError("no address")
    waiting = list(reversed(numbers))
    try:
        while waiting or tries:
            if waiting:
                tries.add(asyncio.create_task(_wire(waiting.pop(), port)))
            done, tries = await asyncio.wait(tries, timeout=_STAGGER_S if waiting else None, return_when=asyncio.FIRST_COMPLETED)
            good = [attempt.result() for attempt in done if attempt.exception() is None]
            for surplus in good[1:]:
                surplus.abort()
            if good:
                return good[0]
            for attempt in done:
                failure = attempt.exception()
                if not isinstance(failure, OSError):
                    attempt.result()
                else:
                    error = failure
    finally:
        for attempt in tries:
            attempt.add_done_callback(_dropped)
            attempt.cancel()
    raise error


def _dropped(attempt: asyncio.Task[Wire]) -> None:
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().abort()


async def _wire(number: str, port: int) -> Wire:
    _, wire = await asyncio.get_running_loop().create_connection(Wire, number, port)
    return wire
