"""The newest ask of a document wins, from the moment it arrives.

Owns which ask of each document is the newest, and the tasks of those that lost until they are done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from monkeycode_lsp.errors import SupersededError

T = TypeVar("T")


class Turn:
    """One per server."""

    # The mutable state is the newest claim of each document, and the losers' tasks; it changes in
    # `claim`, `release` and `_let_go` only, never across an await.

    def __init__(self) -> None:
        self._newest: dict[str, asyncio.Future[None]] = {}
        self._leaving: set[asyncio.Task[Any]] = set()

    def claim(self, document: str) -> asyncio.Future[None]:
        """Take the turn.  The claim before it is superseded at once."""
        before = self._newest.get(document)
        if before is not None and not before.done():
            before.set_result(None)
        claim: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._newest[document] = claim
        return claim

    def release(self, document: str, claim: asyncio.Future[None]) -> None:
        """The ask is answered."""
        if self._newest.get(document) is claim:
            del self._newest[document]

    async def run(self, claim: asyncio.Future[None], work: Coroutine[Any, Any, T]) -> T:
        """Run `work` while the claim holds.

        Raises `SupersededError` at once when a newer claim is made; the work is cancelled and
        finishes its clean-up on its own.  `CancelledError` keeps its one meaning: our caller left.
        """
        if claim.done():
            work.close()
            raise SupersededError
        task = asyncio.create_task(work)
        either: list[asyncio.Future[Any]] = [task, claim]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._let_go(task)
            raise
        if not task.done():
            self._let_go(task)
            raise SupersededError
        return task.result()

    def _let_go(self, task: asyncio.Task[Any]) -> None:
        task.cancel()
        self._leaving.add(task)
        task.add_done_callback(self._gone)

    def _gone(self, task: asyncio.Task[Any]) -> None:
        self._leaving.discard(task)
        if not task.cancelled():
            task.exception()  # read, so that asyncio does not complain: nobody waits for it any more

    async def aclose(self) -> None:
        """Wait until the losers have cleaned up."""
        if self._leaving:
            await asyncio.wait(self._leaving, timeout=2.0)
