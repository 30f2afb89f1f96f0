"""Bytes to and from one server: requests over the connections that `network` opens.  Slow to import.

Both versions of HTTP are ours, over the state machines of `h11` and `h2`: cookies, redirects and environment
variables are not wanted here, and a cancel must cost exactly the connection or stream that it concerns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from monkeycode_lsp.engines.remote.address import Address
from monkeycode_lsp.engines.remote.http import faults, proxy, tls
from monkeycode_lsp.engines.remote.http.failures import CONNECT_S, GoneError, SparedError, translated
from monkeycode_lsp.engines.remote.http.http1 import Connection
from monkeycode_lsp.engines.remote.http.network import Network, Route
from monkeycode_lsp.engines.remote.http.reply import Reply, Response
from monkeycode_lsp.engines.remote.http.wires import Wire
from monkeycode_lsp.errors import EngineUnavailableError, StaysHereError

if TYPE_CHECKING:
    from monkeycode_lsp.engines.remote.http.http2 import Session

KEEP_ALIVE_S = 50.0
"""Shorter than the minute of common proxies and balancers.  A server that closes sooner is noticed at once."""

_MAX_IDLE = 16
"""Connections that are kept for later."""
_SAFE = "/%:@!$&'()*+,;=~-._?"
_NOT_IN_HTTP2 = frozenset({b"host", b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"})

_PERHAPS_TLS = "If it speaks TLS, begin `url` in `remote.endpoints` with https:."
_PERHAPS = "If it asks who you are, set `clientCert` of the endpoint in `remote.endpoints`."
"""Many servers end the connection without a word when they miss a certificate."""


class Transport:
    """Connections to one server.

    The mutable state is the connections, among them what was opened before it is needed, and whether the
    server is one that breaks off; there is no upper limit: how many streams run is decided above, and a
    limit here could only make a keystroke wait unseen.
    """

    def __init__(
        self,
        address: Address,
        headers: Mapping[str, str],
        *,
        trust: tls.Trust = tls.Trust(),  # noqa: B008 - frozen
        http2: bool = False,
        environ: Mapping[str, str],
    ) -> None:
        """Slow: reads certificates.  Raises `EngineUnavailableError` for settings that cannot be used."""
        self._address = address
        self._host, self._authority = _names(address)
        self._headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        self._http2 = http2 and address.secure
        if self._http2:
            _demand_h2()
        self._perhaps = "" if trust.client_cert else _PERHAPS if address.secure else _PERHAPS_TLS
        self._network = Network(_route(address, self._host, trust, environ, http2=self._http2), within_s=CONNECT_S)
        self._elsewhere = f"the server at {address.base} is not on it"
        self._targets: dict[str, bytes] = {}
        self._breaks_off = False
        """It ended the last connection without an answer, though nothing was wrong with that connection."""
        self._connections: list[Connection] = []
        self._sessions: list[Session] = []
        self._connecting = asyncio.Lock()
        self._warming: asyncio.Task[None] | None = None

    @property
    def is_here(self) -> bool:
        """Whether the server is on this machine and no proxy is between, as far as is known."""
        return self._network.is_here

    async def send(self, path: str, body: bytes | None = None, *, stays_here: bool = False) -> Reply:
        """GET `path`, or POST `body` to it.

        `stays_here`: over a connection that ends on this machine or not at all; raises `StaysHereError`.

        One silent retry over a fresh connection if one that had lain idle ends before any answer: the server may
        have closed it just then.  A server that breaks off whatever it is asked is asked once.
        """
        with translated(self._address.base, perhaps=self._perhaps):
            connection, is_doubtful = await self._connection(stays_here=stays_here)
            try:
                response = await self._ask(connection, path, body)
            except (GoneError, SparedError) as exc:
                if not is_doubtful and not isinstance(exc, SparedError):
                    self._breaks_off = True
                    raise
                await self._forget_idle()  # they may all be as dead
                connection, _ = await self._connection(stays_here=stays_here)
                self._breaks_off = True
                response = await self._ask(connection, path, body)
            self._breaks_off = False
        return Reply(response, self._address.base)

    def warm(self) -> None:
        """See to it that a connection lies ready for the next request.  Returns at once; costs next to nothing if one does."""
        if (self._warming is None or self._warming.done()) and not self._is_warm():
            self._warming = asyncio.create_task(self._prepare())

    async def aclose(self) -> None:
        """Close every connection."""
        if self._warming is not None:
            self._warming.cancel()
            await asyncio.wait({self._warming})
        self._network.close()
        sessions, self._sessions = self._sessions, []
        for session in sessions:
            await session.aclose()
        for connection in self._connections:
            connection.wire.abort()

    # HTTP/1.1 and HTTP/2

    async def _connection(self, *, stays_here: bool) -> tuple[Connection | Session, bool]:
        """One that is good for a request, and whether the server may have given it up meanwhile."""
        session = await self._session() if self._http2 else None
        if session is not None:
            if stays_here and not session.wire.is_here:
                raise StaysHereError(self._elsewhere)
            return session, session.doubtful and not self._breaks_off
        self._drop_dead()
        connection = next((kept for kept in self._connections if kept.idle and (kept.wire.is_here or not stays_here)), None)
        if connection is None:
            connection = self._keep(await self._network.open())
        if stays_here and not connection.wire.is_here:
            raise StaysHereError(self._elsewhere)
        connection.claim()
        return connection, connection.doubtful and not self._breaks_off

    async def _ask(self, connection: Connection | Session, path: str, body: bytes | None) -> Response:
        method, target = (b"GET" if body is None else b"POST"), self._target(path)
        if not isinstance(connection, Connection):
            return await connection.ask(self._http2_head(method, target), body)
        headers = self._headers if body is None else [*self._headers, (b"content-length", b"%d" % len(body))]
        if not any(name == b"host" for name, _ in self._headers):
            headers = [(b"host", self._authority), *headers]
        via = self._network.via
        if via is not None and not self._address.secure:
            target = b"http://" + self._authority + target
            if via.authorization:
                headers = [*headers, (b"proxy-authorization", via.authorization.encode())]
        return await connection.ask(method, target, headers, body)

    def _keep(self, wire: Wire) -> Connection:
        connection = Connection(wire)
        self._connections.append(connection)
        return connection

    def _drop_dead(self) -> None:
        """Close what is too old, too many, or has said something that nobody asked for."""
        now = monotonic()
        idle = [kept for kept in self._connections if kept.idle]
        for kept in self._connections:
            if not kept.busy and (kept not in idle[:_MAX_IDLE] or now - kept.used_at > KEEP_ALIVE_S):
                kept.wire.abort()
        self._connections = [kept for kept in self._connections if not kept.wire.over]

    def _http2_head(self, method: bytes, target: bytes) -> list[tuple[bytes, bytes]]:
        authority = next((value for name, value in self._headers if name == b"host"), self._authority)
        head = [(b":method", method), (b":authority", authority), (b":scheme", b"https"), (b":path", target)]
        return head + [field for field in self._headers if field[0] not in _NOT_IN_HTTP2]

    def _target(self, path: str) -> bytes:
        target = self._targets.get(path)
        if target is None:
            parts = urlsplit(self._address.url(path))
            query = f"?{parts.query}" if parts.query else ""
            target = self._targets[path] = quote(f"{parts.path or '/'}{query}", safe=_SAFE).encode()
        return target

    async def _session(self) -> Session | None:
        """An HTTP/2 connection with room for one more request; None if the server does not speak it."""
        from monkeycode_lsp.engines.remote.http.http2 import Session  # noqa: PLC0415 - needs an optional package

        async with self._connecting:
            await self._tidy()
            found = next((session for session in self._sessions if session.has_room), None)
            if found is None and any(session.is_shut for session in self._sessions):
                raise faults.NotAvailableError
            if found is None and self._http2:
                wire = await self._network.open()
                if tls.speaks_http2(wire.get_extra_info("ssl_object")):
                    found = Session(wire)
                    self._sessions.append(found)
                    await _within(found.settled(), CONNECT_S)
                else:
                    self._http2 = False
                    self._keep(wire)
            return found

    async def _tidy(self) -> None:
        now = monotonic()
        for session in list(self._sessions):
            if session.over or (session.idle and now - session.used_at > KEEP_ALIVE_S):
                self._sessions.remove(session)
                await session.aclose()

    # Connections before they are needed

    def _is_warm(self) -> bool:
        if any(session.has_room for session in self._sessions):
            return True
        self._drop_dead()
        return any(kept.idle for kept in self._connections)

    async def _prepare(self) -> None:
        try:
            if (not self._http2 or await self._session() is None) and not any(kept.idle for kept in self._connections):
                self._keep(await self._network.open())
        except (faults.NetworkError, faults.ConnectTimeoutError, faults.ProxyError, faults.NotAvailableError):
            pass  # the request that follows will tell

    async def _forget_idle(self) -> None:
        for kept in self._connections:
            if kept.idle:
                kept.wire.abort()
        for session in self._sessions:
            if session.idle:
                await session.aclose()


def _names(address: Address) -> tuple[str, bytes]:
    """The host as DNS and certificates know it, and host and port as HTTP writes them."""
    try:
        host = address.host if address.host.isascii() else address.host.encode("idna").decode()
    except UnicodeError as exc:
        raise EngineUnavailableError(f"The address {address.base} cannot be used.", remedy="Correct `url` in `remote.endpoints`.") from exc
    shown = f"[{host.partition('%')[0]}]" if ":" in host else host  # which of our links leads there is no business of the server's
    usual = 443 if address.secure else 80
    return host, (shown if address.port == usual else f"{shown}:{address.port}").encode()


def _route(address: Address, host: str, trust: tls.Trust, environ: Mapping[str, str], *, http2: bool) -> Route:
    via = proxy.choose(address, environ)
    context = tls.context(trust, environ, alpn=("h2", "http/1.1") if http2 else ("http/1.1",)) if address.secure else None
    via_context = tls.context(tls.Trust(trust.ca_files), environ, alpn=("http/1.1",)) if via is not None and via.secure else None
    return Route(host, address.port, host.partition("%")[0].rstrip("."), context, via, via_context)


async def _within(settled: Coroutine[Any, Any, None], limit_s: float) -> None:
    try:
        async with asyncio.timeout(limit_s):
            await settled
    except TimeoutError:
        raise faults.ConnectTimeoutError from None


def _demand_h2() -> None:
    try:
        import h2  # noqa: F401, PLC0415 - optional: asked only whether it is there
    except ImportError:
        raise EngineUnavailableError(
            "`remote.http2` is on, and the Python package `h2` that it needs is not installed.",
            remedy="Install it (`pip install h2`), or switch `remote.http2` off.",
        ) from None
