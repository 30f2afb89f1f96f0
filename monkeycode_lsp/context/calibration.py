"""Rates that follow what prompts really took, by model and language (pure).

An answer's usage corrects them, by exponential smoothing and inside bounds.  What the window goes by changes only when
it has become wrong by a tenth: each change moves the window's borders, and the engine reads it anew.
"""

from __future__ import annotations

from collections import OrderedDict

from monkeycode_lsp.context import tokens
from monkeycode_lsp.context.tokens import Rates

_TELLING_TOKENS = 64
"""A shorter prompt says more of its markers than of its text."""
_FARTHEST = 4.0
"""How far from the first guess a rate can go; what is farther counted something else, such as only what was not in a cache."""
_SHARE = 0.15
"""Of the newest prompt in what is believed."""
_WRONG = 1.1
_MOST = 256


class _Belief:
    """Of one model and language."""

    # The mutable state is what is believed, from how many prompts, and what the window goes by; it changes in `learn` only.

    def __init__(self, start: Rates) -> None:
        self._start = start
        self._piece, self._other = start.piece, start.other
        self._n = 0
        self.rates = start

    def learn(self, n_pieces: float, n_other: float, n_tokens: int) -> None:
        share = max(_SHARE, 0.6 / (self._n + 1))
        by_pieces, by_others = n_pieces * self._piece, n_other * self._other
        # One sum corrects one rate: that of the larger part.
        if by_others > by_pieces:
            sample, start = (n_tokens - by_pieces) / n_other, self._start.other
        elif n_pieces:
            sample, start = (n_tokens - by_others) / n_pieces, self._start.piece
        else:
            return
        if not start / _FARTHEST <= sample <= start * _FARTHEST:
            return
        self._n += 1
        if by_others > by_pieces:
            self._other += share * (sample - self._other)
        else:
            self._piece += share * (sample - self._piece)
        if _differs(self._piece, self.rates.piece) or _differs(self._other, self.rates.other):
            self.rates = Rates(self._piece, self._other)


class Calibration:
    """Of all models and languages that were asked."""

    # The mutable state is the beliefs, the least recently used first.

    def __init__(self) -> None:
        self._beliefs: OrderedDict[tuple[str, str], _Belief] = OrderedDict()

    def rates(self, model: str, language: str) -> Rates:
        """What to go by; `model` is its fingerprint."""
        belief = self._beliefs.get((model, language))
        if belief is None:
            return tokens.rates(language)
        self._beliefs.move_to_end((model, language))
        return belief.rates

    def learn(self, model: str, language: str, text: str, n_tokens: int) -> None:
        """A prompt of this text took so many tokens."""
        if n_tokens < _TELLING_TOKENS:
            return
        n_pieces, n_other = tokens.shape_of_lines(text)
        belief = self._beliefs.setdefault((model, language), _Belief(tokens.rates(language)))
        self._beliefs.move_to_end((model, language))
        if len(self._beliefs) > _MOST:
            self._beliefs.popitem(last=False)
        belief.learn(n_pieces, n_other, n_tokens)


def _differs(now: float, before: float) -> bool:
    return not 1 / _WRONG <= now / before <= _WRONG
