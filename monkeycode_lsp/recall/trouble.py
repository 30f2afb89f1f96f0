"""What can be wrong with the team's server, and what the user may do about it."""

from __future__ import annotations

import enum


class Trouble(enum.Enum):
    """Each value completes "The team's cache at HOST:PORT …"."""

    UNREACHABLE = "cannot be reached. Check that it runs and that `cache.sharedUrl` names it."
    SILENT = "does not answer in time."
    SLOW = "answers too slowly to be of use."
    PASSWORD = "does not accept the user name or the password of `cache.sharedUrl`."  # noqa: S105 - a sentence
    CERTIFICATE = "shows a certificate that is not trusted. Name your authority's PEM file: rediss://…?ssl_ca_certs=/path/to/ca.pem."
    TLS = "does not speak TLS as `cache.sharedUrl` asks for. Check its port, or write redis:// for a server without TLS."
    LOADING = "is still loading its data."
    CLUSTER = "is part of a cluster, which is not supported. Let `cache.sharedUrl` name a single server."
    REFUSED = "refuses to read. Its user needs the right to GETRANGE and SET keys that begin with `monkeycode:`."
    READ_ONLY = "takes no new suggestions: it is full, a replica, or its user may not write."
    CHANGED = "gives back something else than was kept there, which is not used."
    STRANGE = "is no Redis or Valkey. Check the port in `cache.sharedUrl`."
