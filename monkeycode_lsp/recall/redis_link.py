"""The only module that knows the `redis` package: two commands, and what went wrong in the user's words.

Heavy, and the package is an extra: import it late and on a thread.  One try for each command: who asks again,
and when, is decided elsewhere.  No reply, whatever its length, takes more memory than `_MOST_BYTES` and a little.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from redis import exceptions as redis_errors
from redis._parsers import _AsyncRESP2Parser
from redis.asyncio import Redis
from redis.asyncio.connection import AbstractConnection, Connection, ConnectionPool, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from monkeycode_lsp.errors import ConfigError
from monkeycode_lsp.recall.address import Address
from monkeycode_lsp.recall.trouble import Trouble

_CONNECT_S = 1.0
_ANSWER_S = 0.5
"""Longer than anybody waits: so a late answer is still read, and the connection stays good."""
_MOST_BYTES = 131_072
"""More than is ever asked for."""
_PASSWORD = (redis_errors.AuthenticationError, redis_errors.AuthorizationError, redis_errors.AuthenticationWrongNumberOfArgsError)
_CLUSTER = (redis_errors.AskError, redis_errors.ClusterError, redis_errors.ClusterCrossSlotError, redis_errors.TryAgainError)


class Link:
    """A few connections to one server, made when needed."""

    # The mutable state is the client's pool of connections, which it keeps by itself, and the address that new ones
    # go to; `go_to` changes it.

    def __init__(self, address: Address, *, most_connections: int) -> None:
        """Blocking: reads certificates.  Raises `ConfigError`."""
        self._number = address.host
        kind, how = _connection(address, lambda: self._number)
        pool = ConnectionPool(
            connection_class=kind,
            max_connections=most_connections,
            db=address.db,
            username=address.username or None,
            password=address.password or None,
            socket_connect_timeout=_CONNECT_S,
            socket_timeout=_ANSWER_S,
            protocol=2,
            decode_responses=False,
            parser_class=_Parser,
            retry=Retry(NoBackoff(), 0),
            **how,
        )
        self._client = Redis.from_pool(pool)

    def go_to(self, number: str) -> None:
        """New connections go to this numeric address: the event loop must not look up the name.  A socket with a path has none."""
        self._number = number

    async def read(self, name: str, *, most_bytes: int) -> bytes | Trouble:
        """The first bytes of what is kept under `name`; empty for nothing, and for what is no text."""
        try:
            # Not GET: somebody's huge value would be read to its end.
            found = await self._client.getrange(name, 0, most_bytes)
        except (redis_errors.RedisError, OSError) as exc:
            return b"" if _code(exc) == "WRONGTYPE" else _trouble(exc)
        return found if isinstance(found, bytes) else Trouble.STRANGE

    async def write(self, name: str, value: bytes, *, ttl_s: int) -> Trouble | None:
        """Keep `value`."""
        try:
            await self._client.set(name, value, ex=ttl_s)
        except (redis_errors.RedisError, OSError) as exc:
            trouble = _trouble(exc)
            return Trouble.READ_ONLY if trouble is Trouble.REFUSED else trouble
        return None

    async def aclose(self) -> None:
        await self._client.aclose()


def _connection(address: Address, number: Callable[[], str]) -> tuple[type[AbstractConnection], dict[str, Any]]:
    """The kind of connection, and what only that kind takes."""
    if address.path:
        return UnixDomainSocketConnection, {"path": address.path}
    place = {"host": address.host, "port": address.port, "number": number, "socket_keepalive": True}
    if address.tls:
        return _TLSConnection, place | {"context": _context(address)}
    return _Connection, place


class _Connection(Connection):
    """To a numeric address."""

    def __init__(self, *, number: Callable[[], str], **how: Any) -> None:
        super().__init__(**how)
        self._number = number

    def _connection_arguments(self) -> Mapping[str, Any]:
        return {**super()._connection_arguments(), "host": self._number()}


class _TLSConnection(_Connection, SSLConnection):
    """With a context that was made beforehand: making one takes long enough to be felt on the event loop."""

    def __init__(self, *, context: ssl.SSLContext, **how: Any) -> None:
        super().__init__(**how)
        self.ssl_context.context = context

    def _connection_arguments(self) -> Mapping[str, Any]:
        # The certificate is the name's.
        return {**super()._connection_arguments(), "server_hostname": self.host}


class _Parser(_AsyncRESP2Parser):
    """Refuses a reply by its first line, before the rest is read: of a value that is too long, of a list, which nothing here asks for."""

    async def _readline(self) -> bytes:
        line = bytes(await super()._readline())  # of bounded length itself
        kind, length = line[:1], line[1:]
        if kind == b"*" or (kind == b"$" and length != b"-1" and not _is_fair(length)):
            raise redis_errors.InvalidResponse
        return line


def _is_fair(length: bytes) -> bool:
    return length.isdigit() and len(length) <= len(str(_MOST_BYTES)) and int(length) <= _MOST_BYTES


def _context(address: Address) -> ssl.SSLContext:
    """A certificate is always checked, against the system's authorities and the user's own."""
    context = ssl.create_default_context()
    try:
        if address.ca_file:
            context.load_verify_locations(cafile=Path(address.ca_file).expanduser())
        if address.cert_file:
            key_file = Path(address.key_file or address.cert_file).expanduser()
            # Without a password OpenSSL would ask for one on the terminal.
            context.load_cert_chain(Path(address.cert_file).expanduser(), key_file, password=address.key_password)
    except OSError as exc:  # ssl.SSLError is one
        raise ConfigError(
            "A certificate or key that `cache.sharedUrl` names cannot be read.",
            remedy="Let ssl_ca_certs, ssl_certfile and ssl_keyfile name PEM files.",
        ) from exc
    return context


def _code(exc: BaseException) -> str:
    """The code that an error reply begins with.  The rest of it is never shown: it can quote what was sent, a password too."""
    word = str(exc).partition(" ")[0] if isinstance(exc, redis_errors.ResponseError) else ""
    return word if word.isascii() and word.isupper() else ""


def _trouble(exc: BaseException) -> Trouble:  # noqa: PLR0911 - one case after the other
    if isinstance(exc, _PASSWORD):
        return Trouble.PASSWORD
    if isinstance(exc, _CLUSTER) or _code(exc) in ("MOVED", "ASK", "CROSSSLOT", "CLUSTERDOWN", "MASTERDOWN"):
        return Trouble.CLUSTER
    if isinstance(exc, redis_errors.BusyLoadingError):
        return Trouble.LOADING
    if isinstance(exc, redis_errors.ResponseError):
        return Trouble.REFUSED
    if isinstance(exc, redis_errors.InvalidResponse):
        return Trouble.STRANGE
    # The client wraps what the socket said.
    cause: BaseException | None = exc
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Trouble.CERTIFICATE
        if isinstance(cause, ssl.SSLError):
            return Trouble.TLS
        cause = cause.__cause__ or cause.__context__
    return Trouble.SILENT if isinstance(exc, redis_errors.TimeoutError | TimeoutError) else Trouble.UNREACHABLE
