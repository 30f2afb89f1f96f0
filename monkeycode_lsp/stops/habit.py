"""Does this model end by itself?  Learned from how its answers end (pure)."""

from __future__ import annotations

import msgspec

from monkeycode_lsp.stops.amount import PATIENCE

_LEAST_KNOWN = 4
_LEAST_SHARE = 0.25
_MOST = 32
_EVERY = 8


class Habit(msgspec.Struct, frozen=True):
    """How often a model ended by itself, and how often it ran on until it was cut.

    Waiting beyond a likely end is worth its time with the first kind only.
    """

    n_ended: float = 0.0
    n_ran_on: float = 0.0
    n_asked: int = 0

    @property
    def patience(self) -> int:
        """For the next plan.  A model that runs on is given another chance now and then: it may do better elsewhere."""
        n = self.n_ended + self.n_ran_on
        if n < _LEAST_KNOWN or self.n_ended >= _LEAST_SHARE * n or self.n_asked % _EVERY == 0:
            return PATIENCE
        return 0

    def after(self, *, ended: bool, ran_on: bool) -> Habit:
        """With one more answer, of which the latest count most."""
        fade = 1 - 1 / _MOST
        return Habit(self.n_ended * fade + ended, self.n_ran_on * fade + ran_on, self.n_asked + 1)
