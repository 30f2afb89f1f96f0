"""The address that a user wrote, brought into one form.  Pure.

People write the bare host, `/v1`, or the whole path of one route; all of them mean the same server.
"""

from __future__ import annotations

import ipaddress
import re
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
_OTHER_VERSION = re.compile(r"/v\d+[a-z\d]*\Z")
"""What a few servers have in place of `/v1`."""

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
    path = parts.path.rstrip("/")
    route = next((route for route in _ROUTES if path.endswith(route)), "")
    path = path.removesuffix(route)
    version = None if route.startswith("/v1") else _OTHER_VERSION.search(path)
    user_info, _, netloc = parts.netloc.rpartition("@")
    user, _, password = user_info.partition(":")
    return Address(
        base=f"{scheme}://{netloc}{path[: version.start()] if version else path}".rstrip("/"),
        host=host,
        port=port or (443 if scheme == "https" else 80),
        credentials=(unquote(user), unquote(password)) if user_info else None,
        query=parts.query,
        version=version.group() if version else "/v1",
        api=_APIS.get(route, ""),
    )


def is_loopback(host: str) -> bool:
    """Whether `host` can only mean this machine."""
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ip = ipaddress.ip_address(name.strip("[]").partition("%")[0])
    except ValueError:
        return False
    return ip.is_loopback or ip.is_unspecified
