"""How likely proposed tokens are accepted, learned over all runs of a process, and how many are worth proposing.

A source (the draft text, the text that was read, a draft model) that agreed for long will probably go on to agree;
so the odds are learned by how many tokens it was right with before.  Pure and deterministic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from monkeycode_lsp.engines.local.costs import Costs

Source = Literal["text", "lookup", "model"]
_PRIORS: dict[Source, tuple[float, ...]] = {
    "text": (0.3, 0.5, 0.92, 0.95, 0.97, 0.98),
    "lookup": (0.2, 0.4, 0.6, 0.8, 0.9, 0.95),
    "model": (0.65, 0.7, 0.75, 0.8, 0.85, 0.85),
}
"""What is believed first, for 0, 1, from 2, from 4, from 8 and from 16 tokens that agreed."""
_PRIOR_WEIGHT = 6.0
"""That belief counts as so many tokens seen."""
_MEMORY = 64.0
"""After so many tokens what was seen counts half: sources get better and worse."""
_LONGEST = 63
_HOPELESS = 0.02
"""A token that is reached so rarely is not worth looking at."""
_MARGIN = 1.05
"""A proposal must promise so many times the speed of none: the figures are estimates."""
_WATCHED = 16
"""A source that cannot pay is watched again in every so many-th run."""
_PROBE_SHARE = 0.01
"""Of the time that passes without a source that is off, this share is spent on trying it again …"""
_PROBE_GROWTH = 2.0
_PROBE_RAREST = 8.0
"""… and less with each trial, down to this part of it."""


class Odds:
    """What is known of the sources."""

    def __init__(self) -> None:
        # The mutable state is the decayed counts per source and level of agreement (changed in `learn`), how often
        # a hopeless source was passed over (`watches`), and what may be spent on trials of sources (`probe`).
        self._tries = {source: [_PRIOR_WEIGHT] * len(chances) for source, chances in _PRIORS.items()}
        self._hits = {source: [_PRIOR_WEIGHT * chance for chance in chances] for source, chances in _PRIORS.items()}
        self._passed_over = dict.fromkeys(_PRIORS, 0)
        self._saved_ms = dict.fromkeys(_PRIORS, 0.0)
        self._rarity = dict.fromkeys(_PRIORS, 1.0)

    def learn(self, source: Source, agreed: int, *, hit: bool) -> None:
        """One token: `agreed` before it had been right, and it was a `hit` or not.  It need not have been proposed."""
        level = _level(agreed)
        tries, hits = self._tries[source], self._hits[source]
        tries[level] += 1
        hits[level] += hit
        if tries[level] > _MEMORY:
            tries[level] /= 2
            hits[level] /= 2
        if hit and self._rarity[source] > 1:
            self._rarity[source] /= _PROBE_GROWTH

    def judged(self, source: Source, agreed: int, n_proposed: int, n_accepted: int) -> None:
        """Learn from a proposal that came after `agreed` right tokens."""
        for n in range(n_accepted):
            self.learn(source, agreed + n, hit=True)
        if n_accepted < n_proposed:
            self.learn(source, agreed + n_accepted, hit=False)

    def chance(self, source: Source, agreed: int) -> float:
        """That the next token is right."""
        level = _level(agreed)
        return self._hits[source][level] / self._tries[source][level]

    def length(
        self,
        source: Source,
        agreed: int,
        costs: Costs,
        limit: int,
        extra_ms: Callable[[int], float] | None = None,
    ) -> int:
        """How many tokens to propose, at most `limit`, for the most tokens per millisecond; 0: it does not pay.

        `extra_ms`: what so many tokens of this source cost before they are verified.
        """
        best, best_rate = 0, _MARGIN / costs.of(1)
        expected = reached = 1.0
        for n in range(1, min(limit, _LONGEST) + 1):
            reached *= self.chance(source, agreed + n - 1)
            if reached < _HOPELESS:
                break
            expected += reached
            rate = expected / (costs.of(n + 1) + (extra_ms(n) if extra_ms else 0.0))
            if rate > best_rate:
                best, best_rate = n, rate
        return best

    def watches(self, source: Source, costs: Costs) -> bool:
        """Whether a run should look what a source would say: it may pay, or was not looked at for many runs."""
        if self.length(source, _PROVEN, costs, _LONGEST):
            return True
        self._passed_over[source] += 1
        return self._passed_over[source] % _WATCHED == 0

    def probe(self, source: Source, price_ms: float, passed_ms: float) -> bool:
        """Whether to try a source that does not pay, at this price; called at each chance that it would have had.

        `passed_ms`: what is decoded instead.  The trials never cost more than `_PROBE_SHARE` of the time, and are
        worth it only for what cannot be watched for nothing.
        """
        self._saved_ms[source] += passed_ms * _PROBE_SHARE
        if self._saved_ms[source] < price_ms * self._rarity[source]:
            return False
        self._saved_ms[source] = 0.0
        self._rarity[source] = min(self._rarity[source] * _PROBE_GROWTH, _PROBE_RAREST)
        return True


_N_LEVELS = 6
_PROVEN = 1 << (_N_LEVELS - 2)
"""With so many tokens that agreed, more do not raise the odds."""


def _level(agreed: int) -> int:
    return min(agreed.bit_length(), _N_LEVELS - 1)
