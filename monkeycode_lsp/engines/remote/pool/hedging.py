"""Asking a second server when the first is slower than it nearly always is: when that is allowed, and how often.  Pure.

It buys the slowest answers off at the price of a few requests; so it is bounded by a budget, and does not cost money.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Literal

from monkeycode_lsp.engines.remote.pool.latency import is_much_slower
from monkeycode_lsp.engines.remote.pool.member import Member

SHARE = 0.1
"""Of the asks that somebody waits for."""
_MOST_SAVED = 5.0
UNKNOWN_S = 1.0
"""Where nobody's pace is known: most servers are quicker, and who types still waits then."""
LEAST_S = 0.05
"""A second request cannot be worth less than that."""
_OWN_SUFFIXES = (".local", ".lan", ".internal", ".home.arpa", ".localhost")


class Budget:
    """A token bucket: each ask puts a share of a second request in."""

    # The mutable state is what was saved; it changes in `asked` and `spend` only.

    def __init__(self) -> None:
        self._saved = 1.0

    def asked(self) -> None:
        self._saved = min(_MOST_SAVED, self._saved + SHARE)

    def spend(self) -> bool:
        """Whether a second request is allowed; it is counted."""
        if self._saved < 1.0:
            return False
        self._saved -= 1.0
        return True


def after_s(first: Member, others: Iterable[Member]) -> float:
    """When a second server is asked beside this one: what it nearly never exceeds, or what the quickest does not."""
    known = [usual_s for member in others if member.is_good and (usual_s := member.latencies.usual_s()) is not None]
    quickest_s = min(known, default=UNKNOWN_S)
    own_s = first.latencies.usual_s()
    return max(LEAST_S, quickest_s if own_s is None or (known and is_much_slower(own_s, quickest_s)) else own_s)


def allows(mode: Literal["auto", "on", "off"], second: Member) -> bool:
    """Whether the settings let this server be asked beside another one."""
    return mode == "on" or (mode == "auto" and not second.metered)


def is_metered(setting: Literal["auto", "yes", "no"], host: str) -> bool:
    """Whether each request costs money; `auto`: at hosts that are not of the user's own network."""
    return setting == "yes" or (setting == "auto" and not _is_own(host))


def _is_own(host: str) -> bool:
    name = host.lower().rstrip(".").strip("[]").partition("%")[0]
    try:
        ip = ipaddress.ip_address(name)
    except ValueError:
        return "." not in name or name.endswith(_OWN_SUFFIXES)
    mapped = getattr(ip, "ipv4_mapped", None)
    return not (mapped or ip).is_global
