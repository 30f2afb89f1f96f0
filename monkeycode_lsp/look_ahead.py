"""Whether the next suggestion may be worked out before anybody asks for it: the budget and the battery.

What is looked ahead for is the document as it would be with the shown suggestion taken, so that a
user who takes one after the other never waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from monkeycode_lsp import clock, config, threads
from monkeycode_lsp.engines.base import Model

_SAVED_S = 5.0
"""So much engine time can be saved up."""
_LEAST_S = 0.5
"""With less, nothing is finished."""
_LOOK_AT_POWER_S = 60.0
_THREAD = "battery"


class LookAhead:
    """The allowance of one pipeline."""

    # The mutable state is the engine time that is left, when that was reckoned, and what is known of the battery;
    # it changes in `spent`, `_reckon` and `_look` only.

    def __init__(self, settings: config.LookAhead, on_battery: Callable[[], bool]) -> None:
        self._mode = settings.mode
        self._share = settings.share
        self._on_battery = on_battery
        self._left_s = _SAVED_S * self._share
        self._at: float | None = None
        self._unplugged = False
        self._looked_at: float | None = None
        self._looking: asyncio.Task[None] | None = None

    def allows(self, model: Model) -> bool:
        """Whether to begin now."""
        if self._mode == "off":
            return False
        if self._mode == "auto" and not model.takes_background:
            return False
        if self._mode == "auto" and self._is_unplugged():
            return False
        return self.left_s >= _LEAST_S

    @property
    def left_s(self) -> float:
        """Engine time that may be used now."""
        self._reckon()
        return max(0.0, self._left_s)

    @property
    def may_read(self) -> bool:
        """Whether the engine may read something that nobody waits for."""
        return not self._is_unplugged()

    def spent(self, engine_s: float) -> None:
        """So much of the engine's time was used for it."""
        self._reckon()
        self._left_s -= engine_s

    def aclose(self) -> None:
        """Look at the battery no more."""
        if self._looking is not None:
            self._looking.cancel()

    def _reckon(self) -> None:
        now = clock.now()
        if self._at is not None:
            self._left_s = min(_SAVED_S, self._left_s + (now - self._at) * self._share)
        self._at = now

    def _is_unplugged(self) -> bool:
        """As it was when it was last looked at; that may block, so it is done on a thread now and then."""
        due = self._looked_at is None or clock.now() - self._looked_at > _LOOK_AT_POWER_S
        if due and (self._looking is None or self._looking.done()):
            self._looked_at = clock.now()
            self._looking = asyncio.create_task(self._look())
        return self._unplugged

    async def _look(self) -> None:
        if threads.at_work(_THREAD):  # of a pipeline that was here before
            self._looked_at = None
            return
        self._unplugged = await threads.run(_THREAD, self._on_battery)
