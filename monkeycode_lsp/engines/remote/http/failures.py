"""What goes wrong below HTTP, in the user's words.

The messages are ours throughout: those of the libraries may hold addresses with passwords.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from monkeycode_lsp.engines.remote.http import faults
from monkeycode_lsp.errors import EngineBusyError, EngineError, EngineUnavailableError, StreamBrokenError


class GoneError(faults.RemoteProtocolError):
    """The connection ended before anything of an answer came."""


class UnheardError(GoneError):
    """A connection ended on which the server has never said anything."""


class SparedError(faults.RemoteProtocolError):
    """The request was not sent, or the server says that it has not begun it: it can be asked again."""


CONNECT_S = 3.0
"""Longest wait for a connection, TLS included: what takes longer is no place for a keystroke."""

_WANT_OURS = frozenset({"TLSV13_ALERT_CERTIFICATE_REQUIRED", "SSLV3_ALERT_HANDSHAKE_FAILURE", "SSLV3_ALERT_BAD_CERTIFICATE"})
_REFUSE_OURS = frozenset({"TLSV1_ALERT_UNKNOWN_CA", "SSLV3_ALERT_CERTIFICATE_UNKNOWN", "SSLV3_ALERT_CERTIFICATE_EXPIRED"})
"""Why a server that asks who we are ends the connection."""
_PROXY_WANTS_PASSWORD = 407


@contextmanager
def translated(base: str, *, perhaps: str = "") -> Iterator[None]:
    """Faults as errors of ours; `perhaps`: what may mend it where the server has never said anything."""
    try:
        yield
    except faults.LocalProtocolError:  # its text may hold a header's value, which may be a key
        raise EngineUnavailableError(
            f"A request to {base} cannot be written.",
            remedy="Check `headers`, `apiKey` and `url` in `remote.endpoints` for odd characters.",
        ) from None
    except faults.NotAvailableError as exc:
        raise EngineBusyError(f"The server at {base} takes no request over HTTP/2 now.", remedy="Or switch `remote.http2` off.") from exc
    except (faults.NetworkError, faults.ProtocolError, faults.ConnectTimeoutError, faults.ProxyError) as exc:
        raise _ours(exc, base, perhaps) from exc
    except UnicodeError as exc:
        raise EngineUnavailableError(f"The address {base} cannot be used.", remedy="Correct `url` in `remote.endpoints`.") from exc


def _ours(exc: Exception, base: str, perhaps: str) -> EngineError:
    refused = _tls(exc)
    if isinstance(exc, faults.ProxyError):
        return _by_proxy(exc, base)
    if refused is not None and refused.reason in _WANT_OURS | _REFUSE_OURS:
        return _identity(refused, base)
    if isinstance(exc, faults.ConnectError | faults.ConnectTimeoutError):
        return _not_connected(exc, refused, base)
    return StreamBrokenError(f"The server at {base} broke the connection off.", remedy=perhaps if isinstance(exc, UnheardError) else "")


def _by_proxy(exc: faults.ProxyError, base: str) -> EngineError:
    remedy = "Check HTTPS_PROXY, HTTP_PROXY and NO_PROXY."
    if exc.args == (_PROXY_WANTS_PASSWORD,):
        return EngineUnavailableError(f"The proxy on the way to {base} wants another user name or password.", remedy=remedy)
    if exc.args:
        return EngineUnavailableError(f"The proxy refuses to connect us to {base} (HTTP {exc.args[0]}).", remedy=remedy)
    return EngineUnavailableError(f"The proxy on the way to {base} cannot be reached or does not answer as one.", remedy=remedy)


def _identity(refused: ssl.SSLError, base: str) -> EngineError:
    if refused.reason in _WANT_OURS:
        return EngineUnavailableError(
            f"The server at {base} wants a certificate that says who you are.",
            remedy="Set `clientCert` and `clientKey` of the endpoint in `remote.endpoints`.",
        )
    return EngineUnavailableError(
        f"The server at {base} does not take your certificate.", remedy="Check `clientCert` of the endpoint in `remote.endpoints`."
    )


def _not_connected(exc: Exception, refused: ssl.SSLError | None, base: str) -> EngineError:
    if isinstance(refused, ssl.SSLCertVerificationError):
        return _untrusted(refused, base)
    if isinstance(exc, faults.ConnectTimeoutError):
        return EngineUnavailableError(
            f"{base} cannot be reached: no connection after {CONNECT_S:g} seconds.",
            remedy="Check the network, and `url` in `remote.endpoints`.",
        )
    if refused is not None:
        return EngineUnavailableError(
            f"The server at {base} does not speak TLS as we do.",
            remedy="Check in `remote.endpoints` whether `url` should begin with http: or https:.",
        )
    return EngineUnavailableError(f"Nothing answers at {base}.", remedy="Start the server there, or correct `url` in `remote.endpoints`.")


def _untrusted(refused: ssl.SSLCertVerificationError, base: str) -> EngineError:
    match refused.verify_code:  # OpenSSL's numbers
        case 10:
            return EngineUnavailableError(
                f"The certificate of {base} has expired.", remedy="Have it renewed at the server, and check the date of this machine."
            )
        case 9:
            return EngineUnavailableError(
                f"The certificate of {base} is not valid yet.", remedy="Check the date of this machine and of the server."
            )
        case 62 | 64:
            return EngineUnavailableError(
                f"The certificate of {base} was made out to another name.",
                remedy="Use in `url` of `remote.endpoints` the name that the certificate holds, or have one made for this name.",
            )
        case 18:
            return EngineUnavailableError(
                f"The certificate of {base} is not trusted: the server signed it itself.",
                remedy="Set `caFile` of the endpoint in `remote.endpoints` to a PEM file with this very certificate.",
            )
        case _:
            return EngineUnavailableError(
                f"The certificate of {base} is not trusted: {refused.verify_message}.",
                remedy="Set `caFile` of the endpoint in `remote.endpoints` to the certificate of your authority.",
            )


def _tls(exc: BaseException) -> ssl.SSLError | None:
    cause: BaseException | None = exc
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return cause
        told = next((arg for arg in cause.args if isinstance(arg, BaseException)), None)
        cause = told or cause.__cause__ or cause.__context__
    return None
