"""Whom we trust over TLS.  A certificate is always checked: there is no way to switch that off."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterable, Mapping
from pathlib import Path

import httpx

from monkeycode_lsp.errors import EngineUnavailableError

logger = logging.getLogger(__name__)


def context(ca_files: Iterable[str], environ: Mapping[str, str]) -> ssl.SSLContext:
    """The system's and the usual public authorities, and the user's own.  Slow: reads files."""
    trusted = httpx.create_ssl_context(trust_env=False)
    trusted.load_default_certs()
    for name, keyword in (("SSL_CERT_FILE", "cafile"), ("SSL_CERT_DIR", "capath")):
        path = environ.get(name, "").strip()
        if path:
            try:
                trusted.load_verify_locations(**{keyword: path})
            except OSError:  # a variable for all programs, left over from somewhere: not worth failing for
                logger.debug("%s names nothing that can be read as certificates", name)
    for path in ca_files:
        _add(trusted, path)
    return trusted


def unused() -> ssl.SSLContext:
    """A context that trusts nobody, for addresses without TLS: cheap, and safe if it is ever used."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _add(trusted: ssl.SSLContext, path: str) -> None:
    try:
        trusted.load_verify_locations(cafile=Path(path).expanduser())
    except ssl.SSLError as exc:
        raise EngineUnavailableError(
            f"The file {path} holds no certificate that can be read.",
            remedy="Set `caFile` of the endpoint in `remote.endpoints` to a PEM file with your authority's certificate.",
        ) from exc
    except OSError as exc:
        raise EngineUnavailableError(
            f"The certificate file {path} cannot be read.",
            remedy="Correct `caFile` of the endpoint in `remote.endpoints`.",
        ) from exc
