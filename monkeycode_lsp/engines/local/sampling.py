"""Which token comes next, from one row of logits, and how sure the model is of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Row = npt.NDArray[np.float32]
Draw = Callable[[Row], tuple[int, float]]
"""One row of logits → token and its log-probability (always that of the model, at temperature 1)."""

_MIN_P = 0.05
"""Tokens less likely than this share of the likeliest one are never drawn: a small model's tail is noise."""


def greedy(row: Row) -> tuple[int, float]:
    """The likeliest token; of equals the first."""
    token = int(row.argmax())
    return token, -float(np.log(np.exp(row - row[token]).sum(dtype=np.float64)))


def at_temperature(temperature: float, random: np.random.Generator) -> Draw:
    """Draws from the likely tokens; at 0 it is `greedy`."""
    if temperature <= 0:
        return greedy

    def draw(row: Row) -> tuple[int, float]:
        top = row.max()
        total = np.exp(row - top).sum(dtype=np.float64)
        likely = np.flatnonzero(row >= top + np.log(_MIN_P))
        weights = np.exp((row[likely].astype(np.float64) - top) / temperature)
        token = int(random.choice(likely, p=weights / weights.sum()))
        return token, float(row[token] - top - np.log(total))

    return draw
