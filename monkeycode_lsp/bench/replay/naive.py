"""What we compare with: a server without debounce and cache, and one that waits a fixed time before it asks."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from monkeycode_lsp.domain import Prompt
from monkeycode_lsp.engines.base import Engine


async def answer(engine: Engine, prefix: str, suffix: str, *, debounce_s: float) -> str:
    """What the backend says, as it is.  Cancelling closes the request."""
    await asyncio.sleep(debounce_s)
    text = ""
    async with aclosing(engine.stream(Prompt(segments=(), prefix=prefix, suffix=suffix))) as stream:
        async for chunk in stream:
            text += chunk.text
    return text
