"""The user's own engine as the backend of a replay: asked for real, and everything that it is asked noted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import msgspec

from monkeycode_lsp import prompt as prompts
from monkeycode_lsp.bench.replay.observed import Sent, Typed
from monkeycode_lsp.bench.replay.oracle import Oracle
from monkeycode_lsp.domain import Chunk, Priority, Prompt, Window
from monkeycode_lsp.engines.base import Engine, Model

MAX_TOKENS = 96
_PREFIX_CHARACTERS = 120


class WatchedEngine:
    """Passes on what it is asked, rendered for the engine's model, and keeps it in `sent`."""

    # The mutable state is the requests so far and what became of them; it changes in `stream` only.

    def __init__(self, engine: Engine, oracle: Oracle, typed: Sequence[Typed], *, language: str) -> None:
        self.sent: list[Sent] = []
        self._engine = engine
        self._oracle = oracle
        self._typed = typed
        self._language = language

    async def ready(self) -> Model:
        return await self._engine.ready()

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        """The engine's answer.  It is right where it begins with what the author typed next, or the other way round."""
        loop = asyncio.get_running_loop()
        key = self._oracle.answer(prompt.prefix, prompt.suffix).key
        sent = Sent(
            at=loop.time(),
            key=key,
            answer="",
            right=False,
            background=prompt.priority is not Priority.INTERACTIVE,
            prefix=prompt.prefix[-_PREFIX_CHARACTERS:],
        )
        self.sent.append(sent)
        try:
            async with aclosing(self._engine.stream(await self._rendered(prompt))) as chunks:
                async for chunk in chunks:
                    sent.answer += chunk.text
                    if chunk.finish is not None:
                        sent.ended = loop.time()
                    yield chunk
        finally:
            sent.aborted = sent.ended is None
            sent.ended = sent.ended or loop.time()
            then, said = self._typed[key].then, sent.answer
            sent.right = bool(then and said) and (then.startswith(said) or said.startswith(then))

    async def aclose(self) -> None:
        """The engine is its owner's."""

    async def _rendered(self, prompt: Prompt) -> Prompt:
        window = Window(prompt.prefix, prompt.suffix, self._language, "")
        family = (await self._engine.ready()).family
        return msgspec.structs.replace(prompts.render(window, (), family, max_tokens=MAX_TOKENS), session="replay")
