"""The address that a user wrote, brought into one form.  Pure.

People write the bare host, `/v1`, or the whole path of one route; all of them mean the same server.  A
whole path that is not below `/v1` is taken at its word: gateways have routes where no server has them.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from urllib.parse import unquote, urlsplit

import msgspec

from monkeycode_lsp.errors import EngineUnavailableError

_ROUTES = (
    "/v1/fim/completions",
    "/fim/completions",
    "/v1/chat/completions",
    "/chat/completions",
    "/v1/completions",
    "/v1/models",
    "/beta/completions",
    "/completions",
    "/completion",
    "/infill",
    "/api/generate",
    "/api/chat",
    "/v1",
    "/beta",
)
"""What people append to a server's address; the longer ones first."""
_APIS = {
    "/completion": "llama-server",
    "/infill": "llama-server",
    "/api/generate": "ollama",
    "/api/chat": "ollama",
    "/v1/fim/completions": "mistral",
    "/fim/completions": "mistral",
    "/beta/completions": "deepseek",
}
"""Routes that only one kind of server has."""
_EXACT = frozenset({"/completions", "/chat/completions", "/fim/completions"})
"""Routes that are below `/v1` at most servers, and stand for themselves where a path has no `/v1`."""
_OTHER_VERSION = re.compile(r"/v\d+[a-z\d]*(/openai)?\Z")
"""What a few servers have in place of `/v1`."""
_NAMES_OF_THIS_MACHINE = frozenset(
    {"localhost", "localhost.localdomain", "localhost4", "localhost6", "localhost4.localdomain4", "localhost6.localdomain6"}
    | {"ip6-localhost", "ip6-loopback"}
)
_NUMBER = re.compile(r"[\da-fx.]+")

REMEDY = "Set it to something like http://127.0.0.1:8000."


class Address(msgspec.Struct, frozen=True):
    """Where one server is."""

    base: str
    """`http://host:port/path` without credentials, route and last slash: safe to show."""
    host: str
    port: int
    credentials: tuple[str, str] | None = None
    """User and password that stood in the address; never shown."""
    query: str = ""
    version: str = "/v1"
    """What routes begin with that begin with `/v1` at most servers."""
    api: str = ""
    """The word of the setting `api` for a path that only one kind of server has; empty: the path says nothing."""

    def __repr__(self) -> str:  # the rest may hold a password
        return f"<address {self.base}>"

    @property
    def secure(self) -> bool:
        return self.base.startswith("https:")

    @property
    def loopback(self) -> bool:
        return is_loopback(self.host)

    @property
    def link_local(self) -> bool:
        """Whether the host can only be on a network that this machine is part of."""
        ip = _ip(self.host)
        return ip is not None and ip.is_link_local

    def url(self, path: str) -> str:
        """The whole address of a route."""
        if path.startswith("/v1/"):
            path = self.version + path.removeprefix("/v1")
        return f"{self.base}{path}?{self.query}" if self.query else f"{self.base}{path}"


def parse(text: str) -> Address:
    """Raises `EngineUnavailableError` that names the setting; it never repeats a password."""
    text = text.strip()
    if not text:
        raise EngineUnavailableError("An endpoint in `remote.endpoints` has no `url`.", remedy=REMEDY)
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname or "", parts.port
    except ValueError as exc:
        raise EngineUnavailableError("The `url` of an endpoint in `remote.endpoints` cannot be read.", remedy=REMEDY) from exc
    scheme = parts.scheme.lower()
    if scheme not in {"http", "https"} or not host or any(char.isspace() or not char.isprintable() for char in text):
        raise EngineUnavailableError("The `url` of an endpoint in `remote.endpoints` is not an http or https address.", remedy=REMEDY)
    if port == 0:
        raise EngineUnavailableError("The `url` of an endpoint in `remote.endpoints` has the port 0, where nothing can be.", remedy=REMEDY)
    path, route, version = _parted(parts.path.rstrip("/"))
    user_info, _, netloc = parts.netloc.rpartition("@")
    user, _, password = user_info.partition(":")
    return Address(
        base=f"{scheme}://{netloc}{path}".rstrip("/"),
        host=host.replace("%25", "%") if ":" in host else host,
        port=port or (443 if scheme == "https" else 80),
        credentials=(unquote(user), unquote(password)) if user_info else None,
        query=parts.query,
        version=version,
        api=_APIS.get(route, ""),
    )


def is_loopback(host: str) -> bool:
    """Whether `host` can only mean this machine, in whatever way it is written."""
    name = host.lower().rstrip(".")
    if name in _NAMES_OF_THIS_MACHINE or name.endswith(".localhost"):
        return True
    ip = _ip(name)
    return ip is not None and (ip.is_loopback or ip.is_unspecified)


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that `host` is, as the system reads it: 127.1 and 0x7f000001 are numbers too."""
    try:
        if _NUMBER.fullmatch(host):
            return ipaddress.IPv4Address(socket.inet_aton(host))
        ip = ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except (OSError, ValueError):
        return None
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return mapped or ip


def _parted(path: str) -> tuple[str, str, str]:
    """What stands before every route, the route that was written, and what stands in place of `/v1`."""
    route = next((route for route in _ROUTES if path.lower().endswith(route)), "")
    path = path[: len(path) - len(route)]
    while route.startswith("/v1") and path.lower().endswith("/v1"):  # appended by people and by programs alike
        path = path[: -len("/v1")]
    if route.startswith("/v1"):
        return path, route, "/v1"
    version = _OTHER_VERSION.search(path)
    if version:
        return path[: version.start()], route, version.group()
    return path, route, "" if route in _EXACT else "/v1"
