"""What we compare with: a server without debounce and cache, and one that waits a fixed time before it asks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

from monkeycode_lsp.bench.replay.observed import Typed
from monkeycode_lsp.domain import Prompt
from monkeycode_lsp.engines.base import Engine
from monkeycode_lsp.text import Change


class Naive:
    """Asks the backend for every key, sooner or later, and shows what it says as it is."""

    # The mutable state is the newest key.

    n_failed = 0

    def __init__(self, typed: Sequence[Typed], engine: Engine, *, debounce_s: float) -> None:
        self._typed = typed
        self._engine = engine
        self._debounce_s = debounce_s
        self._newest = 0

    def edit(self, index: int, changes: list[Change], position: tuple[int, int]) -> None:  # noqa: ARG002 - the text is known
        """The author typed the key."""
        self._newest = index

    async def ask(self) -> tuple[str, str]:
        """What the backend says.  Cancelling closes the request."""
        place = self._typed[self._newest]
        await asyncio.sleep(self._debounce_s)
        text = ""
        async with aclosing(self._engine.stream(Prompt(segments=(), prefix=place.prefix, suffix=place.suffix))) as stream:
            async for chunk in stream:
                text += chunk.text
        return text, ""

    async def aclose(self) -> None:
        """Nothing runs on."""
