"""The tier of a team: a Redis or Valkey that all its members name in `cache.sharedUrl`.

An ask never waits longer than `PATIENCE_S` for it, and never for a connection: whether the server is there
(again) is found out in the background.  No source text is in its keys, and trouble costs one warning.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from monkeycode_lsp import clock
from monkeycode_lsp.domain import Origin
from monkeycode_lsp.errors import ConfigError
from monkeycode_lsp.models.package_client import install_line
from monkeycode_lsp.recall import address, breaker, record
from monkeycode_lsp.recall.breaker import Breaker
from monkeycode_lsp.recall.record import Record
from monkeycode_lsp.recall.tier import Warn
from monkeycode_lsp.recall.trouble import Trouble

if TYPE_CHECKING:
    from monkeycode_lsp.recall.redis_link import Link

logger = logging.getLogger(__name__)

PATIENCE_S = 0.02
_NAMES = "monkeycode:1:"
_MOST_GETS = 4
_MOST_PUTS = 4
_FINISH_S = 0.5
"""What was begun may take so long to end when the tier is closed."""
_CUT_S = 0.2

_Asked = asyncio.Task[bytes | Trouble | None]


class Shared:
    """Made and used on one event loop."""

    origin = Origin.SHARED

    # The mutable state is the link (None until the package is loaded), whether the server was ever reached, the
    # two breakers, what has been said, and the tasks in flight; all of it changes on the event loop only.

    def __init__(self, url: str, *, ttl_s: float, warn: Warn, now: Callable[[], float] = clock.now) -> None:
        self._warn = warn
        self._now = now
        self._ttl_s = max(1, round(ttl_s))
        self._address = address.Address()
        self._link: Link | None = None
        self._off = False
        self._reached = False
        self._reads = Breaker()
        self._writes = Breaker()
        self._said: set[str] = set()
        self._gets: set[_Asked] = set()
        self._puts: set[_Asked] = set()
        self._knocks: set[_Asked] = set()
        try:
            self._address = address.parse(url)
        except ConfigError as exc:
            self._give_up(str(exc))
        # A keyed hash of a keyed hash: whoever reads the server's keys but does not know the password learns nothing.
        self._secret = hashlib.blake2b(b"monkeycode shared recall\0" + self._address.password.encode(), digest_size=32).digest()

    def open(self) -> None:
        """Begin to connect; returns at once."""
        self._knock()

    @property
    def patience_s(self) -> float:
        """How long an answer is worth waiting for; 0 while the server is not there."""
        return PATIENCE_S if self._in_order else 0.0

    async def get(self, key: bytes) -> Record | None:
        """What a member of the team has kept there; None for a miss, for any trouble and when it takes too long."""
        link = self._link
        if link is None or not self._in_order or len(self._gets) >= _MOST_GETS:
            self._knock()
            return None
        begun = self._now()
        asked = self._begin(self._gets, self._read(link, key))
        # Waiting is given up, the question is not: the answer is read from the connection, which stays good.
        await asyncio.wait({asked}, timeout=PATIENCE_S)
        if not asked.done():
            if self._now() - begun < 2 * PATIENCE_S:  # else it was this process that was slow
                self._failed(Trouble.SLOW, breaker.SLOW)
            return None
        found = None if asked.cancelled() or asked.exception() else asked.result()
        return record.decode(found) if isinstance(found, bytes) else None

    def put(self, key: bytes, record_: Record) -> None:
        """Keep it for the team, unless the server is not there or too much is on its way to it."""
        link = self._link
        if link is None or not self._in_order:
            self._knock()
            return
        try:
            data = record.encode(record_)
        except UnicodeEncodeError:  # half a surrogate pair
            return
        if len(data) <= record.MOST_BYTES and len(self._puts) < _MOST_PUTS and self._writes.passes(self._now()):
            self._begin(self._puts, self._write(link, key, data))

    async def aclose(self) -> None:
        """Finish what was begun, within a second.  Can be called twice."""
        self._off = True
        if self._puts:
            await asyncio.wait(self._puts, timeout=_FINISH_S)
        tasks = self._gets | self._puts | self._knocks
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_CUT_S)
        link, self._link = self._link, None
        if link is not None:
            closing = self._begin(self._knocks, link.aclose())
            await asyncio.wait({closing}, timeout=_CUT_S)
            closing.cancel()

    @property
    def _in_order(self) -> bool:
        return self._reached and not self._off and not self._reads.is_open

    def _begin(self, group: set[_Asked], work: Coroutine[Any, Any, bytes | Trouble | None]) -> _Asked:
        task = asyncio.create_task(work)
        group.add(task)
        task.add_done_callback(group.discard)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: _Asked) -> None:
        """Whatever the client did not foresee, such as a reply that is none: the server is not what it should be."""
        if not task.cancelled() and (exc := task.exception()) is not None:
            logger.debug("The shared cache failed: %s", type(exc).__name__)
            self._failed(Trouble.STRANGE)

    # Asking

    async def _read(self, link: Link, key: bytes) -> bytes | Trouble:
        begun = self._now()
        found = await link.read(self._name(key), most_bytes=record.MOST_BYTES)
        if isinstance(found, Trouble):
            self._failed(found)
        elif self._now() - begun <= PATIENCE_S:
            self._succeeded()
        return found

    async def _write(self, link: Link, key: bytes, data: bytes) -> Trouble | None:
        trouble = await link.write(self._name(key), data, ttl_s=self._ttl_s)
        if trouble is None:
            if self._writes.good(self._now()):
                logger.info("The team's cache at %s takes suggestions again.", self._address.name)
            return None
        if self._writes.bad(self._now()) and trouble is Trouble.READ_ONLY:
            self._say(trouble)
        if trouble is not Trouble.READ_ONLY:
            self._failed(trouble)
        return trouble

    def _name(self, key: bytes) -> str:
        return _NAMES + hashlib.blake2b(key, key=self._secret, digest_size=20).hexdigest()

    # Out of order and back

    def _knock(self) -> None:
        """Find out in the background whether the server is there, if it is time for that."""
        if not self._off and not self._in_order and not self._knocks and self._reads.passes(self._now()):
            self._begin(self._knocks, self._reach())

    async def _reach(self) -> Trouble | None:
        link = self._link = await self._linked()
        if link is None:
            return None
        quickest_s = float("inf")
        for _ in range(4):  # the first one connects
            begun = self._now()
            found = await link.read(self._name(b""), most_bytes=0)
            if isinstance(found, Trouble):
                self._failed(found)
                return found
            quickest_s = min(quickest_s, self._now() - begun)
        if quickest_s > PATIENCE_S:
            self._failed(Trouble.SLOW)
            return Trouble.SLOW
        self._reached = True
        self._succeeded()
        return None

    async def _linked(self) -> Link | None:
        if self._link is not None:
            return self._link
        try:
            return await asyncio.to_thread(_open, self._address)
        except ImportError:
            line = install_line("shared")
            self._give_up(f"`cache.sharedUrl` needs the package redis: {line}. Suggestions are not shared.")
        except ConfigError as exc:
            self._give_up(str(exc))
        return None

    def _succeeded(self) -> None:
        if self._reads.good(self._now()):
            logger.info("The team's cache at %s is back.", self._address.name)

    def _failed(self, trouble: Trouble, strikes: int = breaker.FAILURE) -> None:
        if not self._off and self._reads.bad(self._now(), strikes):
            self._say(trouble)

    def _say(self, trouble: Trouble) -> None:
        """Once for each kind of trouble, however often it comes back."""
        text = f"The team's cache at {self._address.name} {trouble.value} Completions go on without it."
        logger.warning("%s", text)
        if text not in self._said:
            self._said.add(text)
            self._warn(text)

    def _give_up(self, why: str) -> None:
        self._off = True
        logger.warning("%s", why)
        self._warn(why)


def _open(where: address.Address) -> Link:
    """Blocking."""
    from monkeycode_lsp.recall.redis_link import Link  # noqa: PLC0415 - slow to import, and its package is an extra

    return Link(where, most_connections=_MOST_GETS + _MOST_PUTS + 1)
