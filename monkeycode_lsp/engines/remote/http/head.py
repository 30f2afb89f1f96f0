"""What stands around an answer: over which connection it came, whose certificate that has, and what the server's clock says.  Pure."""

from __future__ import annotations

import email.utils
import ssl
from typing import Any

import msgspec


class Head(msgspec.Struct, frozen=True):
    """Of one answer."""

    status: int
    connection: str = ""
    """The same for answers over the same connection; empty: it cannot be told."""
    date: float | None = None
    """The server's own time, Unix time in seconds; None: it does not say."""
    valid_until: float | None = None
    """End of its certificate, Unix time in seconds; None: there is none."""


def read(status: int, date: str, *, sockname: Any, certificate: Any) -> Head:
    """`sockname`: our side's address; `certificate`: what Python's `getpeercert` gives."""
    return Head(status, "" if sockname is None else repr(sockname), _time(date), _end(certificate))


def _time(date: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError, OSError):  # a year that no clock knows
        return None


def _end(certificate: Any) -> float | None:
    if not isinstance(certificate, dict) or "notAfter" not in certificate:
        return None
    try:
        return float(ssl.cert_time_to_seconds(certificate["notAfter"]))
    except (ValueError, OverflowError):
        return None
