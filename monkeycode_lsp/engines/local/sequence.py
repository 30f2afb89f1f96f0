"""One sequence in the model's KV cache, and the answers written to it.

What is held in the cache is known token by token at any moment, also after an abort; a new prompt
reads only what follows the longest prefix it shares with that.  Knows no library: see `Runtime`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Literal, Protocol

from monkeycode_lsp.domain import Control, Plain, Segment
from monkeycode_lsp.engines.local.assembly import Assembler
from monkeycode_lsp.engines.local.decoder import GenerationError
from monkeycode_lsp.engines.local.wire import Delta, Done, Generate

Sampler = Callable[[], tuple[int, float]]
"""Draws the next token and tells its log-probability."""
Finish = Literal["stop", "length", "cancelled"]
_LEAST_ANSWER = 16
"""A prompt that leaves less room than this (or than it asks for) is refused, so that the caller shortens it."""


class Runtime(Protocol):
    """One model with its context."""

    context_tokens: int
    chunk_tokens: int
    """Most tokens that `evaluate` takes at once: what an abort can lose."""
    bos: int | None
    """The token that the model wants in front of everything; None: it wants none."""
    filler: int
    """Read where a prompt is empty: a model cannot answer nothing."""

    def tokenize(self, text: str) -> list[int]:
        """Tokens of plain text."""
        ...

    def control(self, text: str) -> int:
        """The control token of this text.  Raises `GenerationError` if there is none."""
        ...

    def evaluate(self, tokens: Sequence[int], at: int, is_cancelled: Callable[[], bool]) -> bool:
        """Read `tokens` from position `at` on; False: aborted.  Raises `GenerationError`."""
        ...

    def keep(self, n_tokens: int) -> bool:
        """Drop everything from position `n_tokens` on; False: it could not, and everything is dropped."""
        ...

    def sampler(self, temperature: float) -> Sampler:
        """Draws tokens from the last row of the last `evaluate`, 0 always the likeliest."""
        ...

    def piece(self, token: int) -> bytes:
        """A token's bytes; none for control tokens."""
        ...

    def ends(self, token: int) -> bool:
        """Whether the answer is over with this token: an end-of-generation token or any other control token."""
        ...


class KvSequence:
    """Answers asks, one after the other."""

    def __init__(self, runtime: Runtime) -> None:
        # The mutable state is the list of tokens whose keys and values are in the cache; it changes in
        # `_reuse` and `_read` only, together with the cache.
        self._runtime = runtime
        self._held: list[int] = []

    def generate(self, ask: Generate, is_cancelled: Callable[[], bool]) -> Iterator[Delta | Done]:
        """See `Decoder.generate`."""
        prompt = prompt_tokens(self._runtime, ask.segments)
        room = self._runtime.context_tokens - len(prompt)
        if room < min(ask.max_tokens, _LEAST_ANSWER):
            limit = self._runtime.context_tokens
            raise GenerationError("overflow", f"The prompt has {len(prompt)} tokens, the window {limit}.", limit_tokens=limit)
        reused = self._reuse(prompt)
        whole = self._read(prompt[reused:], is_cancelled)
        read = max(0, len(self._held) - reused)
        if not whole:
            yield Done(ask.id, "cancelled", reused=reused, read=read)
            return
        finish: Finish = "length"
        generated = 0
        if ask.max_tokens:
            finish, generated = yield from self._write(ask, min(ask.max_tokens, room), is_cancelled, (reused, read))
        yield Done(ask.id, finish, reused=reused, read=read, generated=generated)

    def _reuse(self, prompt: list[int]) -> int:
        """Cut the cache back to what it shares with `prompt`; the last token is always read, for its logits."""
        shared = min(common_prefix(self._held, prompt), len(prompt) - 1)
        if len(self._held) > shared:
            if not self._runtime.keep(shared):
                shared = 0
            del self._held[shared:]
        return shared

    def _read(self, tokens: list[int], is_cancelled: Callable[[], bool]) -> bool:
        """Read on in chunks; what was read before an abort stays.  False: aborted."""
        step = self._runtime.chunk_tokens
        for start in range(0, len(tokens), step):
            chunk = tokens[start : start + step]
            try:
                done = not is_cancelled() and self._runtime.evaluate(chunk, len(self._held), is_cancelled)
            except GenerationError:
                self._runtime.keep(0)
                self._held.clear()
                raise
            if not done:
                if not self._runtime.keep(len(self._held)):
                    self._held.clear()
                return False
            self._held += chunk
        return True

    def _write(
        self, ask: Generate, limit: int, is_cancelled: Callable[[], bool], told: tuple[int | None, int | None]
    ) -> Generator[Delta, None, tuple[Finish, int]]:
        """Write the answer; returns how it ended and its tokens.  `told` goes with the first piece."""
        draw = self._runtime.sampler(ask.temperature)
        assembler = Assembler(ask.stop)
        finish: Finish = "length"
        generated = n_tokens = 0
        logprob = 0.0
        while generated < limit:
            token, certainty = draw()
            if self._runtime.ends(token):
                finish = "stop"
                break
            generated += 1
            n_tokens += 1
            logprob += certainty
            if text := assembler.feed(self._runtime.piece(token)):
                yield Delta(ask.id, text, n_tokens, logprob, *told)
                n_tokens, logprob, told = 0, 0.0, (None, None)
            if assembler.stopped:
                finish = "stop"
                break
            if generated < limit and not self._read([token], is_cancelled):
                return "cancelled", generated
        if rest := assembler.finish():
            yield Delta(ask.id, rest, n_tokens, logprob, *told)
        return finish, generated


def prompt_tokens(runtime: Runtime, segments: Sequence[Segment]) -> list[int]:
    """A prompt's tokens.  Plain text gives no control token of the prompt; begin-of-text comes at most once and first."""
    controls = {segment.text: runtime.control(segment.text) for segment in segments if isinstance(segment, Control)}
    tokens: list[int] = []
    for is_plain, group in itertools.groupby(segments, key=lambda segment: isinstance(segment, Plain)):
        if is_plain:
            tokens += _plain_tokens(runtime, "".join(segment.text for segment in group), controls)
        else:
            tokens += [controls[segment.text] for segment in group]
    if runtime.bos is not None and tokens[:1] != [runtime.bos]:
        tokens.insert(0, runtime.bos)
    return tokens or [runtime.filler]


def _plain_tokens(runtime: Runtime, text: str, controls: dict[str, int]) -> list[int]:
    tokens = runtime.tokenize(text)
    if not set(controls.values()).isdisjoint(tokens):
        # A vocabulary that lists its markers as ordinary words: take the written marker apart.
        pieces = [text]
        for marker in controls:
            pieces = [part for piece in pieces for part in _apart(piece, marker)]
        tokens = [token for piece in pieces for token in runtime.tokenize(piece)]
    return tokens


def _apart(text: str, marker: str) -> list[str]:
    """`text` cut behind the first letter of each `marker` in it, so that no piece holds a whole one."""
    head, tail = marker[:1], marker[1:]
    parts = text.split(marker)
    last = len(parts) - 1
    return [("" if n == 0 else tail) + part + ("" if n == last else head) for n, part in enumerate(parts)]


def common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens both begin with."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
