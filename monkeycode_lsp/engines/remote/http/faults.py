"""What can go wrong below HTTP, before it is said in the user's words (see `failures`)."""

from __future__ import annotations


class Fault(Exception):  # noqa: N818 - the tree's root; its leaves are errors
    """Base of these.  Their texts are for nobody: they may hold what a header holds."""


class NetworkError(Fault):
    """The connection does not come about, or breaks."""


class ConnectError(NetworkError):
    """Nobody takes it."""


class ReadError(NetworkError):
    """It broke while we listened."""


class WriteError(NetworkError):
    """It broke while we spoke."""


class ConnectTimeoutError(Fault):
    """It takes longer than it may."""


class ProxyError(Fault):
    """The proxy refuses (its status is the argument), or is none."""


class ProtocolError(Fault):
    """One side does not keep to the rules."""


class LocalProtocolError(ProtocolError):
    """We do not: a header that cannot be written."""


class RemoteProtocolError(ProtocolError):
    """The server does not, or ended in the middle."""


class NotAvailableError(Fault):
    """The connection takes no more requests now."""
