"""Whether a server that takes asks and says nothing is slow or hangs.

Nobody waits as long as `remote.timeoutMs` while typing, so a server that hangs would never be found out:
silence that lasts over several asks is a reason to look at a page that any server answers at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from monkeycode_lsp.errors import EngineBusyError, EngineError, EngineFaultError, EngineRefusedError, EngineUnavailableError

SILENT_S = 2.5
"""Less than the time that an ask has."""
LOOK_S = 3.0
"""For a page that costs the server nothing."""
SLOW_S = 15.0
"""One that is up and answers nothing for so long, over asks, is of no use to somebody who types."""


class Pulse:
    """Of one server."""

    # The mutable state is since when nothing was heard of it, and since when it has answered nothing, though it was asked;
    # the look that runs, what the last look said, and whether the user knows that it is slow.  It changes in the methods only.

    def __init__(
        self,
        base: str,
        look: Callable[[], Awaitable[object]],
        *,
        notify: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._base = base
        self._notify = notify
        self._unanswered_since: float | None = None
        self._told = False
        self._look = look
        self._clock = clock
        self._silent_since: float | None = None
        self._looking: asyncio.Task[None] | None = None
        self._hangs: EngineUnavailableError | None = None

    def check(self) -> None:
        """Raises what is wrong, and looks whether it still is."""
        if self._hangs is not None:
            self._look_now()
            raise self._hangs.with_traceback(None)

    def asked(self) -> None:
        now = self._clock()
        self._silent_since = now if self._silent_since is None else self._silent_since
        self._unanswered_since = now if self._unanswered_since is None else self._unanswered_since

    def answered(self) -> None:
        """An answer has begun."""
        self._unanswered_since = None
        self._told = False
        self.heard()

    def heard(self) -> None:
        """It has said something, whatever it is."""
        self._silent_since = self._hangs = None

    def given_up(self) -> None:
        """An ask left without having heard anything."""
        if self._silent_since is not None and self._clock() - self._silent_since > SILENT_S:
            self._look_now()

    async def aclose(self) -> None:
        looking = self._looking
        if looking is not None:
            looking.cancel()
            await asyncio.wait({looking})

    def _look_now(self) -> None:
        if self._looking is None:
            self._looking = asyncio.create_task(self._see())
            self._looking.add_done_callback(self._seen)

    def _seen(self, _task: asyncio.Task[None]) -> None:
        self._looking = None

    async def _see(self) -> None:
        try:
            async with asyncio.timeout(LOOK_S):
                await self._look()
        except (EngineRefusedError, EngineBusyError, EngineFaultError):
            self.heard()
        except (EngineError, TimeoutError):
            self._hangs = EngineUnavailableError(
                f"The server at {self._base} does not answer any more.", remedy="It may hang: look at it, or start it again."
            )
        else:
            self.heard()
            self._tell_if_slow()

    def _tell_if_slow(self) -> None:
        since = self._unanswered_since
        if not self._told and since is not None and (waited_s := self._clock() - since) > SLOW_S:
            self._told = True
            self._notify(
                f"The server at {self._base} is up, but has answered nothing for {waited_s:.0f} seconds: "
                "it is overloaded, or its model is too large for its machine."
            )
