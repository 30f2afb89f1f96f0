"""The tier of a team: a Redis or Valkey that all its members name in `cache.sharedUrl`.

An ask never waits longer than `PATIENCE_S` for it, and never for a connection: whether the server is there
(again) is found out in the background.  No source text is in its keys, nothing is believed that was not kept under the same
name by who knows the password, and trouble costs one warning.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from monkeycode_lsp import clock, threads
from monkeycode_lsp.domain import Origin
from monkeycode_lsp.errors import ConfigError
from monkeycode_lsp.models.package_client import install_line
from monkeycode_lsp.recall import address, breaker, record, seal
from monkeycode_lsp.recall.breaker import Breaker
from monkeycode_lsp.recall.record import Record
from monkeycode_lsp.recall.resolver import resolve
from monkeycode_lsp.recall.seal import Seal
from monkeycode_lsp.recall.tier import Warn
from monkeycode_lsp.recall.trouble import Trouble

if TYPE_CHECKING:
    from monkeycode_lsp.recall.redis_link import Link

logger = logging.getLogger(__name__)

PATIENCE_S = 0.02
_NAMES = "monkeycode:1:"
_NAME_BYTES = 20
_THREAD = "team's cache"
"""Where what may block is done: the client is loaded, certificates are read and the server's name is looked up."""
_NOT_THERE = (Trouble.UNREACHABLE, Trouble.SILENT)
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

    def __init__(
        self,
        url: str,
        *,
        ttl_s: float,
        warn: Warn,
        now: Callable[[], float] = clock.now,
        resolve: Callable[[str], list[str]] = resolve,
    ) -> None:
        self._warn = warn
        self._now = now
        self._resolve = resolve
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
        secret = hashlib.blake2b(b"monkeycode shared recall\0" + self._address.password.encode(), digest_size=32).digest()
        self._seal = Seal(secret, name_bytes=_NAME_BYTES)

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
        name = self._seal.name(key)
        found = await link.read(_written(name), most_bytes=record.MOST_BYTES + seal.BYTES)
        if isinstance(found, bytes) and found:
            opened = self._seal.opened(name, found)
            found = Trouble.CHANGED if opened is None else opened
        if isinstance(found, Trouble):
            self._failed(found)
        elif self._now() - begun <= PATIENCE_S:
            self._succeeded()
        return found

    async def _write(self, link: Link, key: bytes, data: bytes) -> Trouble | None:
        name = self._seal.name(key)
        trouble = await link.write(_written(name), self._seal.sealed(name, data), ttl_s=self._ttl_s)
        if trouble is None:
            if self._writes.good(self._now()):
                logger.info("The team's cache at %s takes suggestions again.", self._address.name)
            return None
        if self._writes.bad(self._now()) and trouble is Trouble.READ_ONLY:
            self._say(trouble)
        if trouble is not Trouble.READ_ONLY:
            self._failed(trouble)
        return trouble

    # Out of order and back

    def _knock(self) -> None:
        """Find out in the background whether the server is there, if it is time for that."""
        if self._off or self._in_order or self._knocks or threads.at_work(_THREAD):
            return  # the last: for the server of before, whose name nobody answers
        if self._reads.passes(self._now()):
            self._begin(self._knocks, self._reach())

    async def _reach(self) -> Trouble | None:
        found = await self._found()
        if found is None:
            return None
        link, numbers = found
        self._link = link
        trouble: Trouble | None = Trouble.UNREACHABLE
        for number in numbers:
            link.go_to(number)
            trouble = await self._try_out(link)
            if trouble not in _NOT_THERE:
                break
        if trouble is not None:
            self._failed(trouble)
            return trouble
        self._reached = True
        self._succeeded()
        return None

    async def _try_out(self, link: Link) -> Trouble | None:
        quickest_s = float("inf")
        for _ in range(4):  # the first one connects
            begun = self._now()
            found = await link.read(_written(self._seal.name(b"")), most_bytes=0)
            if isinstance(found, Trouble):
                return found
            quickest_s = min(quickest_s, self._now() - begun)
        return Trouble.SLOW if quickest_s > PATIENCE_S else None

    async def _found(self) -> tuple[Link, list[str]] | None:
        """The link, and the server's addresses as the name service knows them now."""
        where, known, resolve = self._address, self._link, self._resolve

        def find() -> tuple[Link, list[str]]:
            return known or _open(where), resolve(where.host) if where.host else [""]

        try:
            return await threads.run(_THREAD, find)
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


def _written(name: bytes) -> str:
    return _NAMES + name.hex()


def _open(where: address.Address) -> Link:
    """Blocking."""
    from monkeycode_lsp.recall.redis_link import Link  # noqa: PLC0415 - slow to import, and its package is an extra

    return Link(where, most_connections=_MOST_GETS + _MOST_PUTS + 1)
