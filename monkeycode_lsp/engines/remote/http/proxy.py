"""Which proxy, if any, the environment asks for.  Pure: the environment is an argument.

This machine and its own link are always reached directly, whatever the variables say (`network` asks
who else is this machine); a proxy that cannot be used
does no harm to an endpoint that does not need it.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

import msgspec

from monkeycode_lsp.engines.remote.address import Address
from monkeycode_lsp.errors import EngineUnavailableError

_PORTS = {"http": 80, "https": 443}


class Proxy(msgspec.Struct, frozen=True):
    """Where an HTTP proxy is, and what it is told about us."""

    host: str
    port: int
    secure: bool = False
    """Whether it is spoken to over TLS."""
    authorization: str = ""
    """Value of `Proxy-Authorization`; never shown."""

    def __repr__(self) -> str:
        return f"<proxy {self.host}:{self.port}>"


def choose(address: Address, environ: Mapping[str, str]) -> Proxy | None:
    """None: go directly.  Raises `EngineUnavailableError` where a proxy is needed that cannot be used."""
    if address.loopback or address.link_local or _exempt(address, _variable(environ, "no_proxy")):
        return None
    scheme = "https" if address.secure else "http"
    proxy = _variable(environ, f"{scheme}_proxy") or _variable(environ, "all_proxy")
    return _parse(proxy, address) if proxy else None


def _variable(environ: Mapping[str, str], name: str) -> str:
    return (environ.get(name) or environ.get(name.upper()) or "").strip().strip("\"'")


def _parse(text: str, address: Address) -> Proxy:
    remedy = f"Set HTTPS_PROXY or HTTP_PROXY to an http address, or add {address.host} to NO_PROXY."
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname or "", parts.port
        host.encode("idna")
    except ValueError:
        host, port, parts = "", None, urlsplit("http:")
    if not host or not text.isprintable() or " " in text:
        raise EngineUnavailableError(f"The proxy that the environment sets for {address.base} cannot be used.", remedy=remedy)
    if parts.scheme not in _PORTS:
        raise EngineUnavailableError(f"The proxy that the environment sets for {address.base} is not an HTTP proxy.", remedy=remedy)
    user_info, at, _ = parts.netloc.rpartition("@")
    user, _, password = user_info.partition(":")
    told = base64.b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode() if at else ""
    return Proxy(host, port or _PORTS[parts.scheme], secure=parts.scheme == "https", authorization=told and f"Basic {told}")


def _exempt(address: Address, no_proxy: str) -> bool:
    return any(_covers(entry.lower(), address) for entry in no_proxy.replace(",", " ").split())


def _covers(entry: str, address: Address) -> bool:
    if entry == "*":
        return True
    host = address.host.lower().rstrip(".")
    entry = entry.partition("://")[2] or entry
    name, colon, port = entry.rpartition(":")
    if colon and port.isdigit() and (":" not in name or name.startswith("[")):
        if int(port) != address.port:
            return False
        entry = name
    entry = entry.strip("[]")
    try:
        return ipaddress.ip_address(host.partition("%")[0]) in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        domain = entry.removeprefix("*").strip(".")
        return bool(domain) and (host == domain or host.endswith(f".{domain}"))
