"""What a model said to a prompt is kept in a file: a run that was broken off goes on, and one with other filters needs no model.

Asked greedily, a model says the same to the same prompt, so the key is the model and everything in the prompt that
can change the answer; whatever version of ours made the prompt.  Of an answer that was stopped, what was said is kept,
and who wants more of it later makes the model say it again.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from monkeycode_lsp.bench.quality.ledger import Ledger
from monkeycode_lsp.domain import Chunk, Finish, Prompt
from monkeycode_lsp.engines.base import Engine, Model
from monkeycode_lsp.errors import EngineError


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """One chunk of a stream."""

    text: str
    logprob: float | None = None
    n_tokens: int = 0


class Answer(msgspec.Struct, frozen=True):
    """All pieces so far."""

    pieces: tuple[Piece, ...] = ()
    finish: Finish | None = None
    """None: whoever read it had enough."""

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)


def key(model: Model, prompt: Prompt) -> str:
    """Of everything that can change a greedy answer."""
    asked = (prompt.segments, prompt.prefix, prompt.suffix, prompt.stop, prompt.max_tokens, prompt.sampling, prompt.grammar, prompt.heal)
    said = hashlib.blake2b(model.fingerprint.encode(), digest_size=16)
    said.update(msgspec.json.encode(asked))
    return said.hexdigest()


class Remembering:
    """An engine that asks another one for what is not known yet."""

    # The mutable state is the model, known once the engine is ready, and the prompts since `heard` was emptied.

    def __init__(self, engine: Engine, answers: Ledger[Answer]) -> None:
        self._engine = engine
        self._answers = answers
        self._model: Model | None = None
        self.heard: list[Prompt] = []

    async def ready(self) -> Model:
        """See `Engine.ready`."""
        self._model = await self._engine.ready()
        return self._model

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        """See `Engine.stream`.  Drafts are not passed on: they change speed only, and sometimes a tie."""
        self.heard.append(prompt)
        name = key(self._model or await self.ready(), prompt)
        known = self._answers.get(name) or Answer()
        for piece in known.pieces:
            yield Chunk(piece.text, logprob=piece.logprob, n_tokens=piece.n_tokens)
        if known.finish is not None:
            yield Chunk("", finish=known.finish)
            return
        async with aclosing(self._beyond(name, known, msgspec.structs.replace(prompt, draft=""))) as more:
            async for chunk in more:
                yield chunk

    async def _beyond(self, name: str, known: Answer, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        """What the model says after what is known."""
        pieces: list[Piece] = []
        finish: Finish | None = None
        told = known.text
        said = ""
        try:
            async with aclosing(self._engine.stream(prompt)) as stream:
                async for chunk in stream:
                    pieces.append(Piece(chunk.text, chunk.logprob, chunk.n_tokens))
                    finish = chunk.finish
                    before, said = len(said), said + chunk.text
                    if len(said) <= len(told) and finish is None:
                        continue
                    if not said.startswith(told):
                        told = ""
                        raise EngineError("The model says something else than before.", remedy="Run it again: it is asked anew then.")
                    yield msgspec.structs.replace(chunk, text=said[max(before, len(told)) :])
        finally:
            if finish is not None or not said.startswith(known.text) or len(said) > len(known.text):
                self._answers.put(name, Answer(tuple(pieces), finish))

    async def aclose(self) -> None:
        """See `Engine.aclose`."""
        await self._engine.aclose()
