"""Whom we trust over TLS, and who we say we are.  A certificate is always checked: there is no way to switch that off."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping
from pathlib import Path

import certifi
import msgspec

from monkeycode_lsp import config
from monkeycode_lsp.errors import EngineUnavailableError

logger = logging.getLogger(__name__)


class Trust(msgspec.Struct, frozen=True):
    """What an endpoint's settings say about certificates."""

    ca_files: tuple[str, ...] = ()
    """Authorities of the user's own."""
    client_cert: str = ""
    client_key: str = ""


def trust(endpoint: config.Endpoint) -> Trust:
    """An endpoint's settings in one form."""
    ca_files = (endpoint.ca_file,) if isinstance(endpoint.ca_file, str) else endpoint.ca_file
    return Trust(tuple(filter(None, ca_files)), endpoint.client_cert, endpoint.client_key)


def context(trusting: Trust, environ: Mapping[str, str], *, alpn: tuple[str, ...]) -> ssl.SSLContext:
    """The system's and the usual public authorities, and the user's own.  Slow: reads files."""
    trusted = ssl.create_default_context(cafile=certifi.where())
    trusted.load_default_certs()
    trusted.set_alpn_protocols(list(alpn))
    for name, keyword in (("SSL_CERT_FILE", "cafile"), ("SSL_CERT_DIR", "capath")):
        path = environ.get(name, "").strip()
        if path:
            try:
                trusted.load_verify_locations(**{keyword: path})
            except (OSError, ValueError):  # a variable for all programs, left over from somewhere: not worth failing for
                logger.debug("%s names nothing that can be read as certificates", name)
    for path in trusting.ca_files:
        _add(trusted, path)
    if trusting.client_cert or trusting.client_key:
        _present(trusted, trusting)
    return trusted


def speaks_http2(tls: ssl.SSLObject | None) -> bool:
    """Whether the server chose HTTP/2."""
    return tls is not None and tls.selected_alpn_protocol() == "h2"


def _add(trusted: ssl.SSLContext, path: str) -> None:
    remedy = "Set `caFile` of the endpoint in `remote.endpoints` to a PEM file with your authority's certificate."
    try:
        trusted.load_verify_locations(cafile=Path(path).expanduser())
    except ssl.SSLError as exc:
        raise EngineUnavailableError(f"The file {path} holds no certificate that can be read.", remedy=remedy) from exc
    except (OSError, ValueError, RuntimeError) as exc:
        raise EngineUnavailableError(f"The certificate file {path} cannot be read.", remedy=remedy) from exc


def _present(trusted: ssl.SSLContext, trust: Trust) -> None:
    """Show our certificate to servers that ask."""
    if not trust.client_cert:
        raise EngineUnavailableError(
            "`clientKey` of an endpoint in `remote.endpoints` is set without `clientCert`.", remedy="Set both, or neither."
        )
    where = "of the endpoint in `remote.endpoints`"
    key = trust.client_key or trust.client_cert
    try:
        for path in (trust.client_cert, key):
            Path(path).expanduser().read_bytes()
    except (OSError, ValueError, RuntimeError) as exc:
        raise EngineUnavailableError(
            "The file of your own certificate or of its key cannot be read.", remedy=f"Correct `clientCert` and `clientKey` {where}."
        ) from exc
    locked = False

    def password() -> str:
        nonlocal locked
        locked = True
        return ""

    try:
        trusted.load_cert_chain(Path(trust.client_cert).expanduser(), Path(key).expanduser(), password=password)
    except (ssl.SSLError, OSError) as exc:
        if locked:
            raise EngineUnavailableError(
                f"The key in {key} is locked with a password, which nobody can type here.",
                remedy=f"Save it without one (`openssl pkey -in {Path(key).name} -out open.pem`) and set `clientKey` {where} to that file.",
            ) from exc
        raise EngineUnavailableError(
            "Your own certificate and its key do not fit together, or are no PEM files.",
            remedy=f"Correct `clientCert` and `clientKey` {where}.",
        ) from exc
