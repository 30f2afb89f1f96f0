"""Prompt lookup: what followed when the last tokens were seen before.  Pure.

Every pair of tokens is chained to its earlier occurrence, so a token costs a microsecond, and the longest of
the latest matches is found by walking one chain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

_LONGEST = 16
"""Matches are not compared beyond this length: it is as good as certain."""
_SHORTEST = 2
_CANDIDATES = 16


class Match(NamedTuple):
    """An earlier place that looks like the end."""

    at: int
    """Index of its last token."""
    n_tokens: int
    """How many tokens are the same there."""


class Lookup:
    """The tokens of one run, with an index."""

    def __init__(self, tokens: Sequence[int], ends: Callable[[int], bool]) -> None:
        # The mutable state is the tokens and the chains of equal pairs; it grows in `add` only.
        self._tokens = list(tokens)
        self._start = _after_control(self._tokens, ends)
        # Both by the index of a pair's second token.
        self._latest: dict[tuple[int, int], int] = {}
        self._earlier: list[int] = [-1] if self._tokens else []
        latest, earlier = self._latest, self._earlier
        for at, pair in enumerate(zip(self._tokens, self._tokens[1:], strict=False), start=1):
            earlier.append(latest.get(pair, -1))
            latest[pair] = at

    def add(self, token: int) -> None:
        """The run has one token more."""
        at = len(self._tokens)
        if at:
            pair = (self._tokens[-1], token)
            self._earlier.append(self._latest.get(pair, -1))
            self._latest[pair] = at
        else:
            self._earlier.append(-1)
        self._tokens.append(token)

    def find(self) -> Match | None:
        """The longest match, of equals the latest; never over a control token of the prompt."""
        end = len(self._tokens) - 1
        longest = min(_LONGEST, end + 1 - self._start)
        if longest < _SHORTEST:
            return None
        best = Match(-1, 0)
        at = self._earlier[end]
        for _ in range(_CANDIDATES):
            if at < 0:
                break
            n_same = self._n_same(at, end, longest)
            if n_same > best.n_tokens:
                best = Match(at, n_same)
                if n_same == longest:
                    break
            at = self._earlier[at]
        return best if best.n_tokens else None

    def after(self, match: Match, n: int) -> list[int]:
        """What followed, `n` tokens; where that reaches the end it repeats itself."""
        start = match.at + 1
        followed = self._tokens[start : start + n]
        if followed and len(followed) < n:
            followed = (followed * (n // len(followed) + 1))[:n]
        return followed

    def _n_same(self, at: int, end: int, longest: int) -> int:
        tokens = self._tokens
        limit = min(longest, at + 1)
        n = _SHORTEST
        while n < limit and tokens[at - n] == tokens[end - n]:
            n += 1
        return n


def _after_control(tokens: Sequence[int], ends: Callable[[int], bool]) -> int:
    """Where the text at the end of `tokens` starts, as far back as matters."""
    first = max(0, len(tokens) - _LONGEST)
    return next((at + 1 for at in range(len(tokens) - 1, first - 1, -1) if ends(tokens[at])), first)
