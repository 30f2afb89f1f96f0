"""How likely proposed tokens are accepted, learned over all runs of a process, and how many are worth proposing.

Two things decide.  A source (the draft text, the text that was read, a draft model) that agreed for long will probably go on to agree;
so the odds are learned by how many tokens it was right with before.  And each source has a credit: what it loses
is bounded by what it gained and by a small share of the time, whatever the odds say.  Pure and deterministic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from monkeycode_lsp.engines.local.batch.costs import Costs

Source = Literal["text", "lookup", "model"]
_PRIORS: dict[Source, tuple[float, ...]] = {
    "text": (0.3, 0.5, 0.92, 0.95, 0.97, 0.98),
    "lookup": (0.2, 0.4, 0.45, 0.6, 0.8, 0.93),
    "model": (0.8,),
}
"""What is believed first, for 0, 1, from 2, from 4, from 8 and from 16 tokens that agreed.  A model has read them all anyway."""
_PRIOR_WEIGHT = 6.0
"""That belief counts as so many tokens seen."""
_MEMORY = 64.0
"""After so many tokens what was seen counts half: sources get better and worse."""
_LONGEST = 63
_PROVEN = 16
"""With so many tokens that agreed, more do not raise the odds."""
_HOPELESS = 0.02
"""A token that is reached so rarely is not worth looking at."""
_MARGIN = 1.05
"""A proposal must promise so many times the speed of none: the figures are estimates."""
_WATCHED = 16
"""A source that cannot pay is watched again in every so many-th run."""
_CREDIT: dict[Source, float] = {"text": 20.0, "lookup": 20.0, "model": 60.0}
"""The most that a source may lose before it has gained anything, in decodes of one row.  A model has a prompt to read first."""
_FOR_TRIALS = 20.0
"""So much of it may go into trials of a source that does not seem to pay."""
_SHARE = 0.01
"""Of the time that passes, this share may be lost by each source, for trials that show whether it got better."""


class Odds:
    """What is known of the sources."""

    def __init__(self) -> None:
        # The mutable state is the decayed counts per source and level of agreement (changed in `learn`), how often
        # a hopeless source was passed over (`watches`), and what each may lose, in decodes of one row (`earn`, `settle`).
        self._tries = {source: [_PRIOR_WEIGHT] * len(chances) for source, chances in _PRIORS.items()}
        self._hits = {source: [_PRIOR_WEIGHT * chance for chance in chances] for source, chances in _PRIORS.items()}
        self._passed_over = dict.fromkeys(_PRIORS, 0)
        self._credit = dict(_CREDIT)

    def learn(self, source: Source, agreed: int, *, hit: bool) -> None:
        """One token: `agreed` before it had been right, and it was a `hit` or not.  It need not have been proposed."""
        level = _level(source, agreed)
        tries, hits = self._tries[source], self._hits[source]
        tries[level] += 1
        hits[level] += hit
        if tries[level] > _MEMORY:
            tries[level] /= 2
            hits[level] /= 2

    def judged(self, source: Source, agreed: int, n_proposed: int, n_accepted: int) -> None:
        """Learn from a proposal that came after `agreed` right tokens."""
        for n in range(n_accepted):
            self.learn(source, agreed + n, hit=True)
        if n_accepted < n_proposed:
            self.learn(source, agreed + n_accepted, hit=False)

    def chance(self, source: Source, agreed: int) -> float:
        """That the next token is right."""
        level = _level(source, agreed)
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

    def earn(self) -> None:
        """A decode passes, and a little may be lost again."""
        for source in self._credit:
            self.settle(source, _SHARE)

    def settle(self, source: Source, decodes: float) -> None:
        """A source has gained so much time, in decodes of one row, or lost it."""
        self._credit[source] = min(self._credit[source] + decodes, _CREDIT[source])

    def affords(self, source: Source) -> bool:
        """Whether a source may lose anything.

        The odds can be wrong in ways that no count per level shows, such as drafts that always fail at the same
        token.  The credit bounds what that can cost.
        """
        return self._credit[source] > 0

    def affords_trial(self, source: Source, decodes: float) -> bool:
        """Whether a source that does not seem to pay may lose so much, to see whether that is still so."""
        return self._credit[source] - decodes > _CREDIT[source] - _FOR_TRIALS


def _level(source: Source, agreed: int) -> int:
    return min(agreed.bit_length(), len(_PRIORS[source]) - 1)
