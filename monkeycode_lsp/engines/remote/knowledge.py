"""What is known of one server: its model, its slots, and with `terms` its API.

Asked for when it is needed, and anew when another server may stand there by now: after it was away, or when it
no longer knows the model or the route that it had.
"""

from __future__ import annotations

import asyncio
import random

import msgspec

from monkeycode_lsp.engines.remote import proofs
from monkeycode_lsp.engines.remote.dialects.base import Fetch, Identity
from monkeycode_lsp.engines.remote.slots import Slots
from monkeycode_lsp.engines.remote.terms import Terms


class Knowledge:
    """Of one server."""

    # The mutable state is the identity once it is known, whether it is doubtful, and which document has which slot;
    # it changes in `ask` and `doubt` only.

    def __init__(self, terms: Terms, *, base: str, model: str, proved: proofs.Apply) -> None:
        """`model`: what the user named, or empty."""
        self._terms = terms
        self._base = base
        self._model = model
        self._proved = proved
        self._is_doubtful = False
        self._lock = asyncio.Lock()
        self.identity: Identity | None = None
        """As it was last."""
        self.slots = Slots(0)

    @property
    def is_certain(self) -> bool:
        return self.identity is not None and not self._is_doubtful

    @property
    def model(self) -> str:
        """The model's name at the server; empty: it has none, or is not known yet."""
        return self.identity.model if self.identity else self._model

    def doubt(self) -> None:
        """Another server may stand there by now."""
        self._is_doubtful = True

    async def ask(self, fetch: Fetch, *, within_s: float) -> Identity:
        """Asks once for all who wait.  Raises `TimeoutError` or an `EngineError`."""
        async with self._lock:
            if self.identity is not None and not self._is_doubtful:
                return self.identity
            self._terms.forget()
            pages = _once(fetch)
            async with asyncio.timeout(within_s):
                dialect = await self._terms.settle(pages)
                told = await dialect.identify(pages, self._model)
                family = await asyncio.to_thread(self._proved, told.family, self._base, told.model)
            self._terms.identified(inserts=told.inserts, without=told.without)
            if self.identity is None or self.identity.slots != told.slots:
                self.slots = Slots(told.slots, first=random.randrange(told.slots or 1))  # noqa: S311 - it only spreads load
            self.identity = msgspec.structs.replace(told, family=family)
            self._is_doubtful = False
            return self.identity


def _once(fetch: Fetch) -> Fetch:
    """The same, but a page that several want to see is fetched once."""
    known: dict[str, bytes | None] = {}

    async def ask(path: str, body: bytes | None) -> bytes | None:
        if body is not None:
            return await fetch(path, body)
        if path not in known:
            known[path] = await fetch(path, None)
        return known[path]

    return ask
