"""Which proxy, if any, the environment asks for.  Pure: the environment is an argument.

This machine is always reached directly, whatever the variables say; a proxy that cannot be used
does no harm to an endpoint that does not need it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from monkeycode_lsp.engines.remote.address import Address


def choose(address: Address, environ: Mapping[str, str]) -> str | None:
    """The proxy's address; None: go directly."""
    if address.loopback or _exempt(address, _variable(environ, "no_proxy")):
        return None
    scheme = "https" if address.secure else "http"
    proxy = _variable(environ, f"{scheme}_proxy") or _variable(environ, "all_proxy")
    if not proxy:
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _variable(environ: Mapping[str, str], name: str) -> str:
    return (environ.get(name) or environ.get(name.upper()) or "").strip()


def _exempt(address: Address, no_proxy: str) -> bool:
    return any(_covers(entry.strip().lower(), address) for entry in no_proxy.split(","))


def _covers(entry: str, address: Address) -> bool:
    if not entry:
        return False
    if entry == "*":
        return True
    host = address.host.lower()
    name, colon, port = entry.rpartition(":")
    if colon and port.isdigit() and ":" not in name.strip("[]"):
        if int(port) != address.port:
            return False
        entry = name
    entry = entry.strip("[]")
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        domain = entry.removeprefix("*").removeprefix(".")
        return bool(domain) and (host == domain or host.endswith(f".{domain}"))
