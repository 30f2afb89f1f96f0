"""Bytes to and from one server: the only module that speaks through httpx, and slow to import.

The client's transport is used without its client: cookies, redirects and environment variables are
not wanted here, and they cost as much as the rest.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager

import httpx

from monkeycode_lsp.engines.remote import proxy, tls
from monkeycode_lsp.engines.remote.address import Address
from monkeycode_lsp.errors import EngineError, EngineUnavailableError, StreamBrokenError

CONNECT_S = 3.0
"""Longest wait for a connection, TLS included: what takes longer is no place for a keystroke."""
KEEP_ALIVE_S = 60.0
MAX_BODY_BYTES = 1_048_576

_TIMEOUTS = {"connect": CONNECT_S, "read": None, "write": None, "pool": None}
"""Only connecting is limited here; how long an answer may take is decided by who reads it."""


class Reply:
    """A response whose head has come.  Close it: that closes the connection if the body is not over."""

    def __init__(self, response: httpx.Response, base: str) -> None:
        self.status = response.status_code
        self.retry_after = response.headers.get("retry-after", "")
        self._response = response
        self._base = base

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """The body as it arrives."""
        as_it_is = self._response.headers.get("content-encoding", "identity").strip().lower() == "identity"
        with _translated(self._base):
            async for piece in self._response.aiter_raw() if as_it_is else self._response.aiter_bytes():
                yield piece

    async def body(self) -> bytes:
        """The whole body, as far as we are willing to hold it."""
        body = bytearray()
        async with aclosing(self.pieces()) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) > MAX_BODY_BYTES:
                    break
        return bytes(body)

    async def aclose(self) -> None:
        await self._response.aclose()


class Transport:
    """Connections to one server.

    The mutable state is httpx's pool.  It has no upper limit of its own: how many streams run is
    decided above, and a limit here could only make a keystroke wait unseen.
    """

    def __init__(
        self,
        address: Address,
        headers: Mapping[str, str],
        *,
        ca_files: tuple[str, ...] = (),
        http2: bool = False,
        environ: Mapping[str, str],
    ) -> None:
        self._address = address
        self._headers = httpx.Headers([(name.encode(), value.encode()) for name, value in headers.items()])
        self._urls: dict[str, httpx.URL] = {}
        via = proxy.choose(address, environ)
        context = tls.context(ca_files, environ) if address.secure or via else tls.unused()
        self._pool = httpx.AsyncHTTPTransport(
            verify=context,
            http2=http2,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=16, keepalive_expiry=KEEP_ALIVE_S),
            trust_env=False,
            proxy=None if via is None else _proxy(via, address),
        )

    async def send(self, path: str, body: bytes | None = None) -> Reply:
        """GET `path`, or POST `body` to it.  One silent retry when the connection ends before any answer.

        A kept connection that the server has just closed looks like that, and so does a server that restarts.
        """
        with _translated(self._address.base):
            try:
                response = await self._pool.handle_async_request(self._request(path, body))
            except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
                response = await self._pool.handle_async_request(self._request(path, body))
        return Reply(response, self._address.base)

    async def aclose(self) -> None:
        await self._pool.aclose()

    def _request(self, path: str, body: bytes | None) -> httpx.Request:
        url = self._urls.get(path)
        if url is None:
            url = self._urls[path] = httpx.URL(self._address.url(path))
        method = "GET" if body is None else "POST"
        return httpx.Request(method, url, headers=self._headers, content=body, extensions={"timeout": _TIMEOUTS})


def _proxy(via: str, address: Address) -> httpx.Proxy:
    remedy = f"Set HTTPS_PROXY or HTTP_PROXY to an http address, or add {address.host} to NO_PROXY."
    try:
        chosen = httpx.Proxy(via)
    except (httpx.InvalidURL, ValueError):
        raise EngineUnavailableError(f"The proxy that the environment sets for {address.base} cannot be used.", remedy=remedy) from None
    if chosen.url.scheme not in {"http", "https"}:
        raise EngineUnavailableError(f"The proxy that the environment sets for {address.base} is not an HTTP proxy.", remedy=remedy)
    return chosen


@contextmanager
def _translated(base: str) -> Iterator[None]:
    """Errors of httpx as ours.  The messages are ours too: theirs may hold addresses with passwords."""
    try:
        yield
    except httpx.TransportError as exc:
        raise _ours(exc, base) from exc
    except httpx.DecodingError as exc:
        raise StreamBrokenError(f"The server at {base} sent a compressed answer that cannot be unpacked.") from exc
    except (httpx.InvalidURL, UnicodeError) as exc:
        raise EngineUnavailableError(f"The address {base} cannot be used.", remedy="Correct `url` in `remote.endpoints`.") from exc


def _ours(exc: httpx.TransportError, base: str) -> EngineError:
    if isinstance(exc, httpx.ProxyError):
        return EngineUnavailableError(f"The proxy refuses to connect us to {base}.", remedy="Check HTTPS_PROXY, HTTP_PROXY and NO_PROXY.")
    if isinstance(exc, httpx.LocalProtocolError | httpx.UnsupportedProtocol):
        return EngineUnavailableError(
            f"A request to {base} cannot be written.",
            remedy="Check `headers`, `apiKey` and `url` in `remote.endpoints` for odd characters.",
        )
    if isinstance(exc, httpx.ConnectError | httpx.ConnectTimeout):
        return _not_connected(exc, base)
    return StreamBrokenError(f"The server at {base} broke the connection off.")


def _not_connected(exc: httpx.TransportError, base: str) -> EngineError:
    tls_error = _cause(exc)
    if isinstance(tls_error, ssl.SSLCertVerificationError):
        return EngineUnavailableError(
            f"The certificate of {base} is not trusted: {tls_error.verify_message}.",
            remedy="Set `caFile` of the endpoint in `remote.endpoints` to the certificate of your authority.",
        )
    if isinstance(exc, httpx.ConnectTimeout):
        return EngineUnavailableError(
            f"{base} cannot be reached: no connection after {CONNECT_S:g} seconds.",
            remedy="Check the network, and `url` in `remote.endpoints`.",
        )
    if tls_error is not None:
        return EngineUnavailableError(
            f"The server at {base} does not speak TLS as we do.",
            remedy="Check in `remote.endpoints` whether `url` should begin with http: or https:.",
        )
    return EngineUnavailableError(f"Nothing answers at {base}.", remedy="Start the server there, or correct `url` in `remote.endpoints`.")


def _cause(exc: BaseException) -> ssl.SSLError | None:
    cause: BaseException | None = exc
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return cause
        cause = cause.__cause__ or cause.__context__
    return None
