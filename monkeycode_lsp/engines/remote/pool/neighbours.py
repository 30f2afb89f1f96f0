"""Endpoints of the settings that are at the same server: what is allowed for one server is not allowed for each of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from monkeycode_lsp import config
from monkeycode_lsp.engines.remote.address import Address
from monkeycode_lsp.engines.remote.pool.member import Member


def merge(endpoints: Iterable[tuple[config.Endpoint, Address]]) -> list[tuple[config.Endpoint, Address]]:
    """Those that differ in nothing but how the address is written and in their weight become one, with the sum of it.

    Those with another model, key or header stay: they may be answered by something else.
    """
    merged: list[tuple[config.Endpoint, Address]] = []
    for endpoint, where in endpoints:
        for number, (other, there) in enumerate(merged):
            if where == there and endpoint == msgspec.structs.replace(other, url=endpoint.url, weight=endpoint.weight):
                merged[number] = (msgspec.structs.replace(other, weight=other.weight + endpoint.weight), there)
                break
        else:
            merged.append((endpoint, where))
    return merged


def introduce(members: Sequence[Member]) -> None:
    """Members at one address share its places."""
    for member in members:
        member.neighbours = tuple(other for other in members if other.base == member.base)
