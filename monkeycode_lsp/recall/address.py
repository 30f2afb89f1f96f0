"""Where the team's Redis or Valkey is, from the setting `cache.sharedUrl` (pure).  What is said about it never holds a password."""

from __future__ import annotations

from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

import msgspec

from monkeycode_lsp.errors import ConfigError

PORT = 6379
_TLS_OPTIONS = {"ssl_ca_certs": "ca_file", "ssl_certfile": "cert_file", "ssl_keyfile": "key_file", "ssl_password": "key_password"}
_FORM = "Write it as redis://host:6379/0, rediss://user:password@host:6379/0 or unix:///path/to/socket."


class Address(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """One server.  `path` is its Unix socket; empty where it has a host and a port."""

    host: str = ""
    port: int = PORT
    path: str = ""
    db: int = 0
    username: str = ""
    password: str = ""
    tls: bool = False
    ca_file: str = ""
    """More authorities to trust, beside the system's."""
    cert_file: str = ""
    key_file: str = ""
    key_password: str = ""

    @property
    def name(self) -> str:
        """For the user: what is reached, without any secret."""
        if self.path:
            return self.path
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __repr__(self) -> str:
        return f"Address({self.name})"


def parse(url: str) -> Address:
    """Raises `ConfigError`, in the user's words."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError as exc:
        raise _unusable("it is not a URL; special characters of a password must be percent-encoded") from exc
    if parts.scheme not in ("redis", "rediss", "unix"):
        raise _unusable("it must begin with redis://, rediss:// or unix://")
    if parts.fragment:
        raise _unusable("it holds a `#`; special characters of a password must be percent-encoded")
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    common = {"username": unquote(parts.username or ""), "password": unquote(parts.password or "")}
    if parts.scheme == "unix":
        return _socket(parts, options, common)
    tls = {field: options.pop(name) for name, field in _TLS_OPTIONS.items() if parts.scheme == "rediss" and name in options}
    db = _db(options.pop("db", "") or parts.path.strip("/"))
    _refuse(options)
    host = unquote(parts.hostname or "") or "localhost"
    return Address(host=host, port=PORT if port is None else port, db=db, tls=parts.scheme == "rediss", **common, **tls)


def _socket(parts: SplitResult, options: dict[str, str], common: dict[str, str]) -> Address:
    if not parts.path.strip("/") or parts.hostname:
        raise _unusable("a socket's path must be absolute, as in unix:///run/redis.sock")
    password = options.pop("password", "") or common["password"]
    db = _db(options.pop("db", ""))
    _refuse(options)
    return Address(path=unquote(parts.path), db=db, username=common["username"], password=password)


def _db(text: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 6):  # noqa: PLR2004 - far more than any server has
        raise _unusable("the number of the database must be digits, as in redis://host:6379/0")
    return int(text)


def _refuse(options: dict[str, str]) -> None:
    """An option that is silently ignored would be a riddle; one that switches the check of certificates off is not offered."""
    known = (*_TLS_OPTIONS, "db", "password")
    for name in options:
        what = f"`{name}` is not for this kind of address" if name in known else "it has an option that is not known"
        raise _unusable(f"{what}; there are db, password (unix://) and {', '.join(_TLS_OPTIONS)} (rediss://)")


def _unusable(why: str) -> ConfigError:
    return ConfigError(f"`cache.sharedUrl` cannot be used: {why}.", remedy=_FORM)
