"""The pause model: from features to the chance that a gap lasts, and to the moment to ask (pure).

A proportional-odds survival model: logit P(gap ≥ t) = score - baseline(t).  One logistic score for each key,
one baseline for all keys over time in units of the user's usual gap; so one set of coefficients serves every
engine's latency, and what was already waited for is a condition and nothing more.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from functools import cache
from importlib import resources

import msgspec

_STEP_MS = 20.0
_LEAST_MS = 1.0
_STEEPEST = 30.0
"""A logit beyond is certainty."""


class Model(msgspec.Struct, frozen=True, rename="camel"):
    """Coefficients, as the training script writes them."""

    horizons: tuple[float, ...]
    """Logarithms of times in units of the usual gap, rising."""
    baseline: tuple[float, ...]
    """At each horizon, rising; a straight line between them and beyond them."""
    weights: dict[str, float]
    """By feature."""
    threshold: float
    """The least chance of a useful answer that is worth asking."""
    threshold_deleted: float
    """The same after a deletion: its answer has no second chance, for who deletes goes on to something else."""

    def score(self, found: Mapping[str, float]) -> float:
        """How much this moment looks like the beginning of a pause."""
        weights = self.weights
        return sum(weights.get(name, 0.0) * value for name, value in found.items())

    def survival(self, score: float, time_ms: float, unit_ms: float) -> float:
        """The chance that the gap is at least so long."""
        return 1.0 / (1.0 + self._odds_against(score, time_ms, unit_ms))

    def outlasts(self, score: float, waited_ms: float, more_ms: float, unit_ms: float) -> float:
        """The chance that a gap which has lasted so long lasts so much longer."""
        ahead = self.survival(score, waited_ms + more_ms, unit_ms)
        return ahead * (1.0 + self._odds_against(score, waited_ms, unit_ms)) if waited_ms > 0 else ahead

    def wait_ms(
        self, score: float, *, waited_ms: float, engine_ms: float, longest_ms: float, unit_ms: float, deleted: bool = False
    ) -> float:
        """When to ask, since the key: the first moment from now on at which an answer would probably be seen."""
        threshold = self.threshold_deleted if deleted else self.threshold

        def worth_it(at_ms: float) -> bool:
            return self.outlasts(score, at_ms, engine_ms, unit_ms) >= threshold

        if waited_ms >= longest_ms or worth_it(waited_ms):
            return waited_ms
        # From now on the chance falls, because the next key is due, until it is overdue; then it only rises.  So the
        # first good moment can be searched by halves.
        steps = range(1, math.ceil((longest_ms - waited_ms) / _STEP_MS))
        n_waited = 1 + bisect_left(steps, True, key=lambda step: worth_it(waited_ms + step * _STEP_MS))  # noqa: FBT003 - what is searched for
        return min(longest_ms, waited_ms + n_waited * _STEP_MS)

    def _odds_against(self, score: float, time_ms: float, unit_ms: float) -> float:
        time = math.log(max(time_ms, _LEAST_MS) / unit_ms)
        horizons, baseline = self.horizons, self.baseline
        index = min(max(bisect_right(horizons, time), 1), len(horizons) - 1)
        low, high = horizons[index - 1], horizons[index]
        share = (time - low) / (high - low)
        logit = baseline[index - 1] + share * (baseline[index] - baseline[index - 1]) - score
        return math.exp(min(logit, _STEEPEST))


@cache
def shipped() -> Model:
    """The model that comes with the package.  The first call reads a small file."""
    data = resources.files("monkeycode_lsp.pause").joinpath("coefficients.json").read_bytes()
    return msgspec.json.decode(data, type=Model)
