"""The headers of every request to one server.  Pure; keys go nowhere else."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping

from monkeycode_lsp import __version__, config


def key(endpoint: config.Endpoint, environ: Mapping[str, str], notify: Callable[[str], None]) -> str:
    """The API key, freed of the blanks and line breaks that copying adds; empty: none."""
    written = "".join(endpoint.api_key.split())
    if written or not endpoint.api_key_env:
        return written
    kept = "".join(environ.get(endpoint.api_key_env, "").split())
    if not kept:
        notify(f"The environment variable {endpoint.api_key_env}, named by `apiKeyEnv` in `remote.endpoints`, is not set: no key is sent.")
    return kept


def build(endpoint: config.Endpoint, api_key: str, credentials: tuple[str, str] | None) -> dict[str, str]:
    """Ours, then the user's own, which win."""
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
        headers[name.strip().lower()] = " ".join(value.split())
    return headers
