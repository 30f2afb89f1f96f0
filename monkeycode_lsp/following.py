"""How an ask gets the text of a running generation: which one it follows, and how long it waits.

Waiting changes nothing: a generation goes on when an ask gives up on it, and the next one gets what it says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from monkeycode_lsp import clock
from monkeycode_lsp.domain import Ask, Scope, Trigger, Window
from monkeycode_lsp.generation import Generation
from monkeycode_lsp.generations import Generations
from monkeycode_lsp.recall.agreement import Rest, between, rest
from monkeycode_lsp.shaping import Shaping

PATIENCE_S = 0.6
"""After so long an automatic ask takes the complete lines that are there; editors stop waiting soon after.
The rest goes on, and the next ask gets it."""
_LATE = 1.25
"""Of the engine's usual time: a generation that takes longer is not waited for by a user who is ahead of it."""
_SOON_S = 0.3
_FAR_BEHIND = 3
"""Characters that the user may be ahead of it.  In replays of real typing, following so far gives a quarter to a third
more answers in time, with fewer requests, than beginning anew at each key; following further gains nothing."""


class Following:
    """Of one pipeline."""

    def __init__(self, generations: Generations, shaping: Shaping) -> None:
        self._generations = generations
        self._shaping = shaping

    async def find(self, uri: str, scope: Scope, window: Window, *, due: float, until: float, engine_s: float) -> Generation | None:
        """The running generation that agrees; one that has not come as far as the user is waited for until it has.

        Until `due`, when another one could begin, that costs nothing; after it only what comes soon is worth it.
        `engine_s`: the engine's usual time.
        """
        adopted = self._generations.adopt(uri, scope, window)
        if adopted is None:
            return None
        generation, so_far = adopted
        if so_far.decided:
            return generation

        def left() -> Rest | None:
            return rest(generation.window, generation.text, window, whole=generation.whole)

        follow_until = min(until, max(due, _worth_following(generation, window, engine_s)))
        await self._until(generation, follow_until, lambda: (now := left()) is None or now.decided)
        if (found := left()) is not None and found.decided and (generation.running or generation.whole):
            return generation
        self._generations.leave(uri)
        return None

    async def wait(self, ask: Ask, window: Window, generation: Generation, until: float) -> None:
        """For the whole answer; an automatic ask that has waited long takes the complete lines that there are."""
        if ask.trigger is Trigger.AUTOMATIC:
            await self._until(generation, min(until, generation.began + PATIENCE_S))
            await self._until(generation, until, lambda: self._usable(generation, window))
        else:
            await self._until(generation, until)

    def goes_on(self, ask: Ask, window: Window, generation: Generation) -> bool:
        """Whether what it said is something to show here; what was left of it may have been typed already."""
        if not generation.whole:
            return False
        cleaned = self._shaping.cleaned(generation, explicit=ask.trigger is Trigger.INVOKED)
        found = rest(generation.window, cleaned.text, window, whole=True) if cleaned.text else None
        return (found is not None and bool(found.text)) or generation.window == window

    async def _until(self, generation: Generation, until: float, enough: Callable[[], bool] | None = None) -> None:
        try:
            await generation.wait(until, enough)
        except asyncio.CancelledError:
            self._generations.unwanted_soon(generation)
            raise

    def _usable(self, generation: Generation, window: Window) -> bool:
        if "\n" not in generation.text.strip("\n"):
            return False
        found = rest(generation.window, self._shaping.cleaned(generation).text, window, whole=False)
        return found is not None and bool(found.text)


def _worth_following(generation: Generation, window: Window, engine_s: float) -> float:
    """When to give up on a generation that is behind the user: at once, if it is far behind or takes long.

    It may turn out to be wrong, and then the time was lost.
    """
    now = clock.now()
    n_ahead = len(between(generation.window, window) or "") - len(generation.text)
    soon = generation.began + engine_s - now <= _SOON_S
    return min(generation.began + _LATE * engine_s, now + _SOON_S) if soon and n_ahead <= _FAR_BEHIND else now
