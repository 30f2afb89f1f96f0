"""What a model said to a prompt is kept in a file: a run that was broken off goes on, and one with other filters needs no model.

Asked greedily, a model says the same to the same prompt, so the key is the model and everything in the prompt that
can change the answer; whatever version of ours made the prompt.  Of an answer that was stopped, what was said is kept,
and for who wants more of it the model goes on from there: said again, a tie between two tokens may end otherwise.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from monkeycode_lsp.bench.quality.ledger import Ledger
from monkeycode_lsp.domain import Chunk, Finish, Plain, Prompt
from monkeycode_lsp.engines.base import Engine, Model


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

    @property
    def n_tokens(self) -> int:
        return sum(piece.n_tokens for piece in self.pieces)


def key(model: Model, prompt: Prompt) -> str:
    """Of everything that can change a greedy answer."""
    asked = (prompt.segments, prompt.prefix, prompt.suffix, prompt.stop, prompt.max_tokens, prompt.sampling, prompt.grammar, prompt.heal)
    said = hashlib.blake2b(model.fingerprint.encode(), digest_size=16)
    said.update(msgspec.json.encode(asked))
    return said.hexdigest()


def continued(prompt: Prompt, said: Answer) -> Prompt:
    """The prompt with the beginning of the answer in it.  Without its draft, which changes the speed only, and at times a tie."""
    if not said.text:
        return msgspec.structs.replace(prompt, draft="")
    *others, last = prompt.segments
    more = Plain(prompt.heal + said.text)
    segments = (*others, Plain(last.text + more.text)) if isinstance(last, Plain) else (*others, last, more)
    return msgspec.structs.replace(prompt, segments=segments, heal="", draft="", max_tokens=prompt.max_tokens - said.n_tokens)


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
        """See `Engine.stream`."""
        self.heard.append(prompt)
        name = key(self._model or await self.ready(), prompt)
        known = self._answers.get(name) or Answer()
        for piece in known.pieces:
            yield Chunk(piece.text, logprob=piece.logprob, n_tokens=piece.n_tokens)
        if known.finish is None and known.n_tokens < prompt.max_tokens:
            async with aclosing(self._beyond(name, known, prompt)) as more:
                async for chunk in more:
                    yield chunk
        else:
            yield Chunk("", finish=known.finish or Finish.LENGTH)

    async def _beyond(self, name: str, known: Answer, prompt: Prompt) -> AsyncGenerator[Chunk, None]:
        """What the model says after what is known."""
        pieces: list[Piece] = []
        finish: Finish | None = None
        try:
            async with aclosing(self._engine.stream(continued(prompt, known))) as stream:
                async for chunk in stream:
                    pieces.append(Piece(chunk.text, chunk.logprob, chunk.n_tokens))
                    finish = chunk.finish
                    yield chunk
        finally:
            if pieces:
                self._answers.put(name, Answer((*known.pieces, *pieces), finish))

    async def aclose(self) -> None:
        """Nothing was started here; the other one is closed by who made it."""
