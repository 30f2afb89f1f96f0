"""The headers of every request to one server.  Pure."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping

import msgspec

from monkeycode_lsp import __version__, config
from monkeycode_lsp.errors import EngineUnavailableError

_NOT_THE_USERS = frozenset({"connection", "content-length", "expect", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"})
"""They say how a message is framed, which only its writer knows."""

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+")
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")


def build(endpoint: config.Endpoint, api_key: str, credentials: tuple[str, str] | None) -> dict[str, str]:
    """Ours, then the user's own, which win.  Raises `EngineUnavailableError` for what HTTP cannot say; it repeats none of it."""
    headers = {
        "accept": "text/event-stream, application/json",
        "accept-encoding": "identity",  # compressing a stream of tokens only delays it
        "content-type": "application/json",
        "user-agent": f"monkeycode-lsp/{__version__}",
    }
    if credentials is not None:
        headers["authorization"] = "Basic " + base64.b64encode(":".join(credentials).encode()).decode()
    if api_key:
        headers["authorization"] = f"Bearer {api_key}"
    for name, value in endpoint.headers.items():
        plain = name.strip().lower()
        if plain not in _NOT_THE_USERS:
            headers[plain] = " ".join(value.split())
    if not all(_NAME.fullmatch(name) and _VALUE.fullmatch(value) for name, value in headers.items()):
        raise EngineUnavailableError(
            "A header for an endpoint in `remote.endpoints` holds characters that HTTP does not allow.",
            remedy="Check `headers`, `apiKey` and what `apiKeyEnv` or `apiKeyring` names.",
        )
    return headers


def digest(headers: Mapping[str, str]) -> str:
    """Headers can choose a model or an adapter; they can be secrets, so only a digest of them is kept."""
    return ":" + hashlib.blake2b(msgspec.json.encode(sorted(headers.items())), digest_size=8).hexdigest() if headers else ""
