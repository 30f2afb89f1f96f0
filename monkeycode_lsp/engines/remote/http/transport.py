"""Bytes to and from one server: requests over the connections that `network` opens.  Slow to import.

HTTP/1.1 is httpcore's, the connection layer of httpx's successor, without the client above it: cookies,
redirects and environment variables are not wanted here, and they cost as much as the rest.  HTTP/2 is ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import httpcore2 as httpcore

from monkeycode_lsp.engines.remote.address import Address
from monkeycode_lsp.engines.remote.http import proxy, tls
from monkeycode_lsp.engines.remote.http.failures import CONNECT_S, translated
from monkeycode_lsp.engines.remote.http.network import Network, Route
from monkeycode_lsp.engines.remote.http.reply import Reply, Response
from monkeycode_lsp.errors import EngineUnavailableError

if TYPE_CHECKING:
    from monkeycode_lsp.engines.remote.http.http2 import Session

KEEP_ALIVE_S = 50.0
"""Shorter than the minute of common proxies and balancers.  A server that closes sooner is noticed at once."""

_SAFE = "/%:@!$&'()*+,;=~-._?"
_NOT_IN_HTTP2 = frozenset({b"host", b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"})

_PERHAPS = "If it asks who you are, set `clientCert` of the endpoint in `remote.endpoints`."
"""Many servers end the connection without a word when they miss a certificate."""


class Transport:
    """Connections to one server.

    The mutable state is httpcore's pool, the HTTP/2 connections, and the one that is opened before it
    is needed; there is no upper limit: how many streams run is decided above, and a limit here could
    only make a keystroke wait unseen.
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
        self._perhaps = _PERHAPS if address.secure and not trust.client_cert else ""
        route = _route(address, self._host, trust, environ, http2=self._http2)
        self._through = b"" if route.via is None or address.secure else b"http://" + self._authority
        self._told_proxy = [] if not self._through or route.via is None else [(b"proxy-authorization", route.via.authorization.encode())]
        self._network = Network(route, within_s=CONNECT_S)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls.unused(),  # the network brings encrypted wires
            max_connections=None,
            max_keepalive_connections=16,
            keepalive_expiry=KEEP_ALIVE_S,
            network_backend=self._network,
        )
        self._targets: dict[str, bytes] = {}
        self._sessions: list[Session] = []
        self._connecting = asyncio.Lock()
        self._warming: asyncio.Task[None] | None = None

    async def send(self, path: str, body: bytes | None = None) -> Reply:
        """GET `path`, or POST `body` to it.  One silent retry when the connection ends before any answer.

        A kept connection that the server has just closed looks like that, and so does a server that restarts.
        """
        with translated(self._address.base, perhaps=self._perhaps):
            try:
                response = await self._ask(path, body)
            except (httpcore.RemoteProtocolError, httpcore.ReadError, httpcore.WriteError):
                await self._forget_idle()  # they may all be as dead
                response = await self._ask(path, body)
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
        await self._pool.aclose()

    # HTTP/1.1 and HTTP/2

    async def _ask(self, path: str, body: bytes | None) -> Response:
        method, target = (b"GET" if body is None else b"POST"), self._target(path)
        session = await self._session() if self._http2 else None
        if session is not None:
            return await session.ask(self._http2_head(method, target), body)
        headers = self._headers if body is None else [*self._headers, (b"content-length", b"%d" % len(body))]
        if not any(name == b"host" for name, _ in self._headers):
            headers = [(b"host", self._authority), *headers]
        scheme = b"https" if self._address.secure else b"http"
        url = httpcore.URL(scheme=scheme, host=self._host.encode(), port=self._address.port, target=self._through + target)
        return await self._pool.handle_async_request(httpcore.Request(method, url, headers=[*headers, *self._told_proxy], content=body))

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
            if found is None and self._http2:
                wire = await self._network.open()
                if tls.speaks_http2(wire.get_extra_info("ssl_object")):
                    found = Session(wire)
                    self._sessions.append(found)
                    await _within(found.settled(), CONNECT_S)
                else:
                    self._http2 = False
                    self._network.keep(wire)
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
        return self._network.prepared or any(kept.is_idle() and not kept.has_expired() for kept in self._pool.connections)

    async def _prepare(self) -> None:
        try:
            if (not self._http2 or await self._session() is None) and not self._network.prepared:
                self._network.keep(await self._network.open())
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProxyError):
            pass  # the request that follows will tell

    async def _forget_idle(self) -> None:
        for kept in self._pool.connections:
            if kept.is_idle():
                await kept.aclose()


def _names(address: Address) -> tuple[str, bytes]:
    """The host as DNS and certificates know it, and host and port as HTTP writes them."""
    try:
        host = address.host if address.host.isascii() else address.host.encode("idna").decode()
    except UnicodeError as exc:
        raise EngineUnavailableError(f"The address {address.base} cannot be used.", remedy="Correct `url` in `remote.endpoints`.") from exc
    shown = f"[{host}]" if ":" in host else host
    usual = 443 if address.secure else 80
    return host, (shown if address.port == usual else f"{shown}:{address.port}").encode()


def _route(address: Address, host: str, trust: tls.Trust, environ: Mapping[str, str], *, http2: bool) -> Route:
    via = proxy.choose(address, environ)
    context = tls.context(trust, environ, alpn=("h2", "http/1.1") if http2 else ("http/1.1",)) if address.secure else None
    via_context = tls.context(tls.Trust(trust.ca_files), environ, alpn=("http/1.1",)) if via is not None and via.secure else None
    return Route(host, address.port, context, via, via_context)


async def _within(settled: Coroutine[Any, Any, None], limit_s: float) -> None:
    try:
        async with asyncio.timeout(limit_s):
            await settled
    except TimeoutError:
        raise httpcore.ConnectTimeout from None


def _demand_h2() -> None:
    try:
        import h2  # noqa: F401, PLC0415 - optional: asked only whether it is there
    except ImportError:
        raise EngineUnavailableError(
            "`remote.http2` is on, and the Python package `h2` that it needs is not installed.",
            remedy="Install it (`pip install h2`), or switch `remote.http2` off.",
        ) from None
