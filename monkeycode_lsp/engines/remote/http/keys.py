"""The key for a server: from the settings, from a variable, or from the system's keyring.  It goes into one header and nowhere else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from monkeycode_lsp import config, threads
from monkeycode_lsp.errors import EngineUnavailableError

KEYRING_S = 5.0
"""Longest wait for the keyring; it may be asking the user for its own password, and goes on doing so."""

_OTHERWISE = "or set `apiKeyEnv` of the endpoint in `remote.endpoints` instead."


def given(endpoint: config.Endpoint, environ: Mapping[str, str], notify: Callable[[str], None]) -> str:
    """The key, as far as it can be had at once, freed of the blanks and line breaks that copying adds; empty: none."""
    written = _clean(endpoint.api_key)
    if written or not endpoint.api_key_env:
        return written
    kept = _clean(environ.get(endpoint.api_key_env.strip(), ""))
    if not kept and not endpoint.api_keyring:
        notify(f"The environment variable {endpoint.api_key_env}, named by `apiKeyEnv` in `remote.endpoints`, is not set: no key is sent.")
    return kept


async def from_keyring(entry: str, *, within_s: float = KEYRING_S) -> str:
    """The key that the system's keyring holds under `service/user`.  Raises `EngineUnavailableError`."""
    service, _, user = (part.strip() for part in entry.rpartition("/"))
    if not service or not user:
        raise EngineUnavailableError(
            "`apiKeyring` of an endpoint in `remote.endpoints` does not name an entry.", remedy="Write it as `service/user`."
        )
    kind = f"keyring {entry}"
    silent = EngineUnavailableError("The system's keyring does not answer.", remedy=f"Unlock it, {_OTHERWISE}")
    if threads.at_work(kind):  # it still hangs, or still asks the user
        raise silent
    try:
        async with asyncio.timeout(within_s):
            return _clean(await threads.run(kind, lambda: _read(service, user)))
    except TimeoutError:
        raise silent from None


def _read(service: str, user: str) -> str:
    """Blocking, for as long as the keyring likes."""
    try:
        import keyring.errors  # noqa: PLC0415 - optional, slow, and its back ends may block
    except ImportError:
        raise EngineUnavailableError(
            "`apiKeyring` of an endpoint in `remote.endpoints` needs the Python package `keyring`, which is not installed.",
            remedy=f"Install it (`pip install keyring`), {_OTHERWISE}",
        ) from None
    try:
        found: str | None = keyring.get_password(service, user)
    except keyring.errors.NoKeyringError:
        raise EngineUnavailableError("This machine has no keyring that can be used.", remedy=f"Set one up, {_OTHERWISE}") from None
    except Exception:  # noqa: BLE001 - each back end has errors of its own, and their texts are not ours to show
        raise EngineUnavailableError("The system's keyring is locked or out of order.", remedy=f"Unlock it, {_OTHERWISE}") from None
    if not found or not found.strip():
        raise EngineUnavailableError(
            f"The system's keyring has no entry {service}/{user}.",
            remedy=f"Make one (`keyring set {service} {user}`), correct `apiKeyring` in `remote.endpoints`, {_OTHERWISE}",
        )
    return found


def _clean(key: str) -> str:
    return "".join(key.split())
