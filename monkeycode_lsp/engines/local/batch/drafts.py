"""Which tokens one run proposes for verification.

A proposal is a hint: each token is drawn as if there were none, and accepted if it is what was drawn.
So nothing here can change an answer, only how soon it is there.  Pure; knows no library and no clock.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from monkeycode_lsp.engines.local.batch.costs import Costs
from monkeycode_lsp.engines.local.batch.lookup import Lookup
from monkeycode_lsp.engines.local.batch.odds import Odds, Source
from monkeycode_lsp.engines.local.batch.track import Track

_TRUSTED = 2
"""So many tokens must have been the draft's before it is proposed: a useless one costs nothing then."""
_TRIAL_TOKENS = 3
"""How much of a source that is off is tried."""


class Proposer(Protocol):
    """Whatever else can guess tokens, at a price: a smaller model."""

    def propose(self, tokens: Sequence[int], n: int) -> list[int]:
        """At most `n` tokens that may follow `tokens`; none if it cannot tell, or not yet."""
        ...

    def lag_ms(self, tokens: Sequence[int]) -> float:
        """What must be spent before it can guess what follows `tokens`."""
        ...

    def token_ms(self) -> float:
        """What each guess costs."""
        ...


class _Guess(NamedTuple):
    """Of the lookup, where it proposed nothing."""

    token: int
    agreed: int


class Drafter:
    """The proposals of one run.

    The draft text and the lookup are also watched where they propose nothing: whether they would have been right
    costs nothing to know, and is how a source that is off comes back.
    """

    def __init__(
        self,
        *,
        text: str,
        prompt: Sequence[int],
        tokenize: Callable[[str], list[int]],
        piece: Callable[[int], bytes],
        odds: Odds,
        costs: Costs,
        ends: Callable[[int], bool],
        proposer: Proposer | None = None,
    ) -> None:
        # The mutable state is how much of the answer was seen and how much of that `judged` has told of, with the
        # last proposal, and the last guess of the lookup that was not proposed.  All of it changes in `propose`
        # and `judged`.
        self._prompt = list(prompt)
        self._odds = odds
        self._costs = costs
        self._ends = ends
        self._proposer = proposer
        self._track = Track(text, tokenize, piece) if text else None
        self._lookup: Lookup | None = None
        self._may_look_up: bool | None = None
        self._n_seen = 0
        self._n_judged = 0
        self._proposed: tuple[Source, int] | None = None
        self._guess: _Guess | None = None

    def propose(self, generated: Sequence[int], limit: int) -> list[int]:
        """At most `limit` tokens that may follow; `generated` is the whole answer so far."""
        self._catch_up(generated)
        self._proposed = None
        self._odds.earn()
        if limit < 1:
            return []
        return (
            self._from_text(limit)
            or self._from_lookup(generated, limit)
            or (self._from_model(self._proposer, generated, limit) if self._proposer else [])
        )

    def judged(self, n_proposed: int, n_accepted: int) -> None:
        """Learn what came of the last proposal: how much of it was read, and how much became part of the answer."""
        if self._proposed is None or n_proposed < 1:
            return
        source, agreed = self._proposed
        self._proposed = None
        self._odds.judged(source, agreed, n_proposed, n_accepted)
        self._odds.settle(source, n_accepted + 1 - self._in_decodes(self._costs.of(n_proposed + 1)))
        self._n_judged = self._n_seen + n_accepted + (n_accepted < n_proposed)

    def _catch_up(self, generated: Sequence[int]) -> None:
        """Follow the answer; learn from the tokens that `judged` said nothing of."""
        for at in range(self._n_seen, len(generated)):
            token, is_news = generated[at], at >= self._n_judged
            if self._track is not None:
                if is_news and self._track.agreed >= _TRUSTED and (expected := self._track.expected(1)):
                    self._odds.learn("text", self._track.agreed, hit=expected[0] == token)
                self._track.said(token)
            if self._guess is not None:
                if is_news:
                    self._odds.learn("lookup", self._guess.agreed, hit=self._guess.token == token)
                self._guess = None
            if self._lookup is not None:
                self._lookup.add(token)
        self._n_seen = len(generated)

    def _from_text(self, limit: int) -> list[int]:
        if self._track is None or self._track.agreed < _TRUSTED:
            return []
        return self._worth("text", self._track.agreed, self._plain(self._track.expected(limit)))

    def _from_lookup(self, generated: Sequence[int], limit: int) -> list[int]:
        if self._may_look_up is None:
            self._may_look_up = self._odds.watches("lookup", self._costs)
        if not self._may_look_up:
            return []
        if self._lookup is None:
            self._lookup = Lookup([*self._prompt, *generated], self._ends)
        match = self._lookup.find()
        if match is None:
            return []
        followed = self._plain(self._lookup.after(match, limit))
        tokens = self._worth("lookup", match.n_tokens, followed)
        if followed and not tokens:
            self._guess = _Guess(followed[0], match.n_tokens)
        return tokens

    def _from_model(self, proposer: Proposer, generated: Sequence[int], limit: int) -> list[int]:
        tokens = [*self._prompt, *generated]
        lag_ms, token_ms = proposer.lag_ms(tokens), proposer.token_ms()

        def extra_ms(n: int) -> float:
            # What has to be read first serves the rest of the answer: a proposal bears its share.
            return token_ms * n + lag_ms * (n + 1) / (limit + 1)

        n = self._odds.length("model", 0, self._costs, limit, extra_ms)
        if not n:
            # Unlike the others it cannot be watched for nothing.
            n = min(limit, _TRIAL_TOKENS)
            if not self._odds.affords_trial("model", self._in_decodes(self._costs.of(n + 1) + token_ms * n + lag_ms) - 1):
                return []
        elif not self._odds.affords("model"):
            return []
        guessed = self._plain(proposer.propose(tokens, n)[:n])
        self._odds.settle("model", -self._in_decodes(token_ms * len(guessed) + lag_ms - proposer.lag_ms(tokens)))
        if guessed:
            self._proposed = ("model", 0)
        return guessed

    def _worth(self, source: Source, agreed: int, tokens: list[int]) -> list[int]:
        """As much of `tokens` as pays."""
        n = self._odds.length(source, agreed, self._costs, len(tokens)) if self._odds.affords(source) else 0
        if n:
            self._proposed = (source, agreed)
        return tokens[:n]

    def _in_decodes(self, ms: float) -> float:
        return ms / self._costs.of(1)

    def _plain(self, tokens: Sequence[int]) -> list[int]:
        """Up to the first token that no answer holds."""
        return list(itertools.takewhile(lambda token: not self._ends(token), tokens))
