"""Trains the pause model on recorded typing.

`python -m monkeycode_lsp.bench.pause_training TRACE… --out FILE`

The package's coefficients come from the Svelte trace of the editing-traces collection with the defaults below.
That trace tells whole seconds only, so its keys are spread inside each second, some copies in one manner and some
in another: what the model learns about rhythm then holds under both and is not an artefact of one of them.
The same traces and options give the same file.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path

import click
import msgspec
import numpy as np
import numpy.typing as npt

from monkeycode_lsp.bench.pause_figures import Moment, measure, moments
from monkeycode_lsp.bench.replay.load import TraceError, load
from monkeycode_lsp.bench.replay.trace import Trace
from monkeycode_lsp.pause.features import features
from monkeycode_lsp.pause.habit import Habit
from monkeycode_lsp.pause.model import Model

HORIZONS = (0.15, 0.3, 0.45, 0.65, 0.85, 1.1, 1.4, 1.8, 2.3, 3.0, 4.0, 5.5, 8.0)
"""In units of the usual gap."""
TIMING = ("gap ", "long gap ", "usual ", "run ")
"""Beginnings of the features that look at times."""
_PENALTY = 3.0
"""Keeps coefficients of rare features small; for each copy of the traces."""
_ITERATIONS = 30
_CONVERGED = 1e-6
_SUPPRESSED = 0.55
"""Of the needless asks of the training traces; what is kept follows.  A request that is sent a little too often still
pays, because the next key can adopt it or type through its answer."""
_AFTER_DELETION = 1.4
"""The threshold there, in thresholds: in replays nearly every request after a deletion was cut off by the next one."""
_HALVINGS = 9
_DIGITS = 4

Floats = npt.NDArray[np.float64]


class Sample(msgspec.Struct, frozen=True):
    """One key to learn from."""

    found: dict[str, float]
    log_gap: float
    """Of the gap after it, in units of the usual gap."""


def samples(typed: Sequence[Moment]) -> list[Sample]:
    """With what the server would have learned of the user until then."""
    habit, learned = Habit(), []
    for moment in typed:
        habit = habit.with_key(moment.since_ms, moment.inserted)
        log_gap = math.log(max(moment.gap_ms, 1.0) / habit.unit_ms)
        learned.append(Sample(features(habit, moment.window), log_gap))
    return learned


def respaced(trace: Trace, seed: int) -> Trace:
    """The same keys in the same seconds, but anywhere inside them, each place as likely as any other."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    times: list[float] = []
    for second, keys in groupby(trace.keys, key=lambda key: math.floor(key.at_s)):
        times.extend(sorted(second + chance.random() for _ in keys))
    moved = tuple(msgspec.structs.replace(key, at_s=at) for key, at in zip(trace.keys, times, strict=True))
    return msgspec.structs.replace(trace, keys=moved)


def fit(learned: Sequence[Sample], *, penalty: float = _PENALTY, without: tuple[str, ...] = ()) -> Model:
    """The most likely coefficients (Newton's method), without a threshold."""
    names = sorted({name for sample in learned for name in sample.found if not (without and name.startswith(without))})
    column = {name: index for index, name in enumerate(names)}
    x = np.zeros((len(learned), len(names)))
    for row, sample in enumerate(learned):
        for name, value in sample.found.items():
            if name in column:
                x[row, column[name]] = value
    horizons = np.log(np.array(HORIZONS))
    lasted = np.array([sample.log_gap for sample in learned])[:, None] >= horizons
    weights, baseline = _newton(x, lasted, penalty)
    baseline = np.maximum.accumulate(baseline)  # of a survival function, whatever the data
    return Model(
        horizons=tuple(_rounded(horizons)),
        baseline=tuple(_rounded(baseline)),
        weights=dict(zip(names, _rounded(weights), strict=True)),
        threshold=0.5,
        threshold_deleted=0.5,
    )


def _newton(x: Floats, lasted: npt.NDArray[np.bool_], penalty: float) -> tuple[Floats, Floats]:
    n_rows, n_features = x.shape
    n_horizons = lasted.shape[1]
    weights = np.zeros(n_features)
    baseline = -np.log((lasted.sum(0) + 1.0) / (n_rows - lasted.sum(0) + 1.0))
    for _ in range(_ITERATIONS):
        chance = 1 / (1 + np.exp(np.clip(baseline - (x @ weights)[:, None], -30, 30)))
        error, spread = chance - lasted, chance * (1 - chance)
        gradient = np.concatenate([x.T @ error.sum(1) + penalty * weights, -error.sum(0)])
        hessian = np.empty((n_features + n_horizons,) * 2)
        hessian[:n_features, :n_features] = (x * spread.sum(1)[:, None]).T @ x + penalty * np.eye(n_features)
        hessian[:n_features, n_features:] = -x.T @ spread
        hessian[n_features:, :n_features] = hessian[:n_features, n_features:].T
        hessian[n_features:, n_features:] = np.diag(spread.sum(0) + 1e-6)
        step = np.linalg.solve(hessian, gradient)
        weights -= step[:n_features]
        baseline -= step[n_features:]
        if np.abs(step).max() < _CONVERGED:
            break
    return weights, baseline


def sparing(model: Model, typed: Sequence[Sequence[Moment]]) -> Model:
    """With the lowest thresholds at which enough of the needless asks are suppressed."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = _with_threshold(model, (low + high) / 2)
        results = [measure(each, model=middle) for each in typed]
        if sum(result.suppressed - _SUPPRESSED for result in results) < 0:
            low = middle.threshold
        else:
            high = middle.threshold
    return _with_threshold(model, (low + high) / 2)


def _with_threshold(model: Model, threshold: float) -> Model:
    deleted = min(1.0, threshold * _AFTER_DELETION)
    return msgspec.structs.replace(model, threshold=round(threshold, _DIGITS), threshold_deleted=round(deleted, _DIGITS))


def train(
    read: Sequence[Callable[[int], Trace]], *, copies: int, respace: bool, without: tuple[str, ...] = (), penalty: float = _PENALTY
) -> Model:
    """A model from traces, each loaded with several seeds."""
    copied: list[list[Moment]] = []
    for seed in range(copies):
        for load_trace in read:
            trace = load_trace(seed)
            copied.append(list(moments(respaced(trace, seed) if respace and seed % 2 else trace)))
    learned = [sample for typed in copied for sample in samples(typed)]
    model = fit(learned, penalty=penalty * copies, without=without)
    return sparing(model, copied[: 2 * len(read)])


def _rounded(values: Floats) -> list[float]:
    return [round(float(value), _DIGITS) for value in values]


@click.command()
@click.argument("traces", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--out", required=True, type=click.Path(dir_okay=False, writable=True, path_type=Path), help="Where the coefficients go.")
@click.option("--copies", default=4, show_default=True, type=click.IntRange(1), help="So often each trace is loaded, with seeds 0, 1, …")
@click.option(
    "--respace/--no-respace", default=True, show_default=True, help="Space every other copy differently; not for traces with fine times."
)
@click.option("--without-timing", is_flag=True, help="Look at the text only, to see what the rhythm is worth.")
def main(traces: tuple[Path, ...], out: Path, copies: int, respace: bool, without_timing: bool) -> None:  # noqa: FBT001 - click gives flags so
    """Train the pause model on the traces."""

    def reader(path: Path) -> Callable[[int], Trace]:
        return lambda seed: load(path, seed=seed)

    try:
        model = train([reader(path) for path in traces], copies=copies, respace=respace, without=TIMING if without_timing else ())
    except TraceError as exc:
        raise click.ClickException(str(exc)) from exc
    out.write_bytes(msgspec.json.format(msgspec.json.encode(model), indent=1) + b"\n")
    click.echo(f"{len(model.weights)} coefficients, threshold {model.threshold}: {out}")


if __name__ == "__main__":
    main()
