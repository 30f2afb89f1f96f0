"""A smaller model of the same vocabulary that guesses what a larger one will say.

Its guesses are hints (see `drafts`), so whatever goes wrong here means no guess, and never a failed answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from monkeycode_lsp.engines.local.batch.costs import Costs
from monkeycode_lsp.engines.local.batch.runtime import Row, Runtime, Sampler
from monkeycode_lsp.engines.local.batch.tokens import common_prefix
from monkeycode_lsp.engines.local.decoder import GenerationError
from monkeycode_lsp.engines.local.wire import Generate

logger = logging.getLogger(__name__)

_SEQUENCE = 0


class ModelDrafts:
    """Proposes a draft model's likeliest tokens; a `Proposer`.

    One call reads at most one batch of what it is behind, so that whoever waits, or wants to stop, waits for no more.
    """

    def __init__(self, runtime: Runtime, *, clock: Callable[[], float]) -> None:
        # The mutable state is the tokens that its sequence holds, changed together with it in `_reuse` and
        # `_read` only; the sampler, made with the first guess; and what its decodes cost.
        self._runtime = runtime
        self._clock = clock
        self._costs = Costs()
        self._held: list[int] = []
        self._sampler: Sampler | None = None

    def propose(self, tokens: Sequence[int], n: int) -> list[int]:
        """At most `n` tokens; none while it is still reading."""
        n = min(n, self._runtime.context_tokens - len(tokens))
        if n < 1 or not tokens:
            return []
        try:
            return self._guess(tokens, n)
        except GenerationError as exc:
            logger.warning("The draft model makes no guess: %s", exc.message)
            self._held.clear()
            return []

    def lag_ms(self, tokens: Sequence[int]) -> float:
        """What reading takes beyond what each guess costs anyway."""
        behind = len(tokens) - self._shared(tokens) - 1
        whole, rest = divmod(max(behind, 0), self._runtime.batch_tokens)
        return whole * self._costs.of(self._runtime.batch_tokens) + (self._costs.of(rest) if rest else 0.0)

    def token_ms(self) -> float:
        """What a guess costs."""
        return self._costs.of(1)

    def close(self) -> None:
        """Give the sampler's memory back; the runtime is its owner's."""
        if self._sampler is not None:
            self._sampler.close()
            self._sampler = None

    def _guess(self, tokens: Sequence[int], n: int) -> list[int]:
        self._reuse(tokens)
        chunk = tokens[len(self._held) : len(self._held) + self._runtime.batch_tokens]
        if not self._read(chunk) or len(self._held) < len(tokens):
            return []
        if self._sampler is None:
            self._sampler = self._runtime.sampler(Generate(id=0, segments=()))
        guessed: list[int] = []
        row = len(chunk) - 1
        while True:
            token, _ = self._sampler.draw(row)
            if self._runtime.ends(token):
                return guessed
            guessed.append(token)
            if len(guessed) == n or not self._read([token]):
                return guessed
            row = 0

    def _reuse(self, tokens: Sequence[int]) -> None:
        """Cut back to what is shared; the last token is always read, for its logits."""
        shared = min(self._shared(tokens), len(tokens) - 1)
        if len(self._held) > shared:
            if not self._runtime.keep(_SEQUENCE, shared):
                shared = 0
            del self._held[shared:]

    def _read(self, tokens: Sequence[int]) -> bool:
        first, last = len(self._held), len(tokens) - 1
        rows = [Row(token, first + n, _SEQUENCE, n == last) for n, token in enumerate(tokens)]
        started = self._clock()
        try:
            whole = self._runtime.decode(rows, _never)
        except GenerationError:
            self._runtime.keep(_SEQUENCE, 0)
            raise
        if not whole:
            if not self._runtime.keep(_SEQUENCE, first):
                self._held.clear()
            return False
        self._costs.observe(len(rows), (self._clock() - started) * 1000)
        self._held += tokens
        return True

    def _shared(self, tokens: Sequence[int]) -> int:
        return common_prefix(self._held, tokens)


def _never() -> bool:
    return False
