"""What a replay found, with the goals beside the figures: what `--json` writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

import monkeycode_lsp
from monkeycode_lsp.bench.figures import Spread
from monkeycode_lsp.bench.replay import score
from monkeycode_lsp.bench.replay.observed import Observed
from monkeycode_lsp.bench.replay.score import Rates
from monkeycode_lsp.bench.replay.simulate import AT_ONCE, PRODUCT

_PERCENTILES = tuple(range(1, 101))
LEAST_JUDGED_KEYS = 300
_BIG = 10.0


class Setup(msgspec.Struct, frozen=True, rename="camel"):
    """How it was replayed."""

    trace: str
    language: str
    first_key: int
    keys: int
    seconds: float
    """From the first key to the last."""
    mode: Literal["simulated", "real time"]
    engine: Literal["oracle", "configured"]
    latency_ms: float
    q: float
    seed: int
    editor_delay_ms: float
    speed: float
    synthetic: bool = False
    """A source file was typed, by nobody."""
    settings: tuple[str, ...] = ()
    """What was set for ours, beside the defaults."""


class Goal(msgspec.Struct, frozen=True, rename="camel"):
    """One figure of ours and what it should be."""

    name: str
    value: float | None
    """None: there is nothing that it could be taken from."""
    bound: Literal["most", "least"]
    goal: float
    unit: Literal["", "share", "ms"] = ""
    ok: bool | None = None


class System(msgspec.Struct, frozen=True, rename="camel"):
    """One system's figures."""

    rates: Rates
    fresh_ratio: float | None
    """Its fresh answers over those of the system that neither waits nor remembers."""
    recalled_ms: Spread | None
    """From ask to reply, of fresh answers without the backend; in real time only."""
    waits_ms: tuple[float, ...]
    """From key to text, of fresh answers: percentiles 1 to 100."""


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """Everything."""

    version: str
    setup: Setup
    systems: tuple[System, ...]
    goals: tuple[Goal, ...] = ()
    not_judged: str = ""
    """Why no goal is judged, where they were asked for."""


def make(setup: Setup, several: Sequence[Observed], *, goals: bool = False) -> Report:
    """The figures of all systems; with `goals`, ours beside what they should be."""
    figures = [score.figures(observed, latency_s=setup.latency_ms / 1e3) for observed in several]
    floor = next((one.n_fresh for one in figures if one.system == AT_ONCE), 0)
    systems = tuple(
        System(
            rates=score.rates(one),
            fresh_ratio=one.n_fresh / floor if floor else None,
            recalled_ms=_recalled(observed, setup) if setup.mode == "real time" else None,
            waits_ms=_percentiles(one.waits_ms),
        )
        for observed, one in zip(several, figures, strict=True)
    )
    not_judged = _not_judged(setup, systems) if goals else ""
    judged = tuple(_goals(systems)) if goals and not not_judged else ()
    return Report(monkeycode_lsp.__version__, setup, systems, judged, not_judged)


def encode(report: Report) -> bytes:
    """As JSON, with as many digits as mean something; what was asked for stands as it was asked for."""
    written = msgspec.to_builtins(report)
    written |= {part: _rounded(written[part]) for part in ("systems", "goals")}
    return msgspec.json.format(msgspec.json.encode(written))


def _rounded(value: Any) -> Any:
    match value:
        case float():
            return round(value, 1 if abs(value) >= _BIG else 4)
        case dict():
            return {name: _rounded(one) for name, one in value.items()}
        case list() | tuple():
            return [_rounded(one) for one in value]
        case _:
            return value


def _not_judged(setup: Setup, systems: Sequence[System]) -> str:
    if setup.engine == "configured":
        return "they are made for the backend that is played here, and say nothing about an engine of your own"
    if setup.keys < LEAST_JUDGED_KEYS:
        return f"{setup.keys} keys are too few, chance decides; it takes {LEAST_JUDGED_KEYS}"
    if all(system.rates.system != PRODUCT for system in systems):
        return f"they are those of {PRODUCT}, which --systems leaves out"
    return ""


def _recalled(observed: Observed, setup: Setup) -> Spread | None:
    waits = [
        (reply.at - typed.at) * 1e3 - setup.editor_delay_ms
        for typed, reply in zip(observed.typed, observed.replied, strict=True)
        if reply.at is not None and reply.text and reply.origin in score.RECALLED
    ]
    return Spread.of(waits) if waits else None


def _percentiles(ordered: Sequence[float]) -> tuple[float, ...]:
    last = len(ordered) - 1
    return tuple(ordered[min(last, len(ordered) * share // 100)] for share in _PERCENTILES) if ordered else ()


def _goals(systems: Sequence[System]) -> list[Goal]:
    ours = next(system for system in systems if system.rates.system == PRODUCT)
    rates, recalled = ours.rates, ours.recalled_ms
    goals = [
        _goal("requests per key", rates.requests_per_key, "most", 0.42),
        _goal("fresh, compared with naive", ours.fresh_ratio, "least", 1.1, "share"),
        _goal("useful work", rates.useful, "least", 0.6, "share"),
        _goal("fresh without the backend", rates.recalled_of_asks, "least", 0.3, "share"),
        _goal("wrong hits", float(rates.wrong_hits), "most", 0.0),
        _goal("needless requests suppressed", rates.needless_suppressed, "least", 0.7, "share"),
        _goal("chances kept", rates.chances_kept, "least", 0.7, "share"),
    ]
    if recalled is not None:
        goals += [
            _goal("recalled answer, p50", recalled.p50, "most", 2.0, "ms"),
            _goal("recalled answer, p99", recalled.p99, "most", 8.0, "ms"),
        ]
    return goals


def _goal(name: str, value: float | None, bound: Literal["most", "least"], goal: float, unit: Literal["", "share", "ms"] = "") -> Goal:
    ok = None if value is None else value <= goal if bound == "most" else value >= goal
    return Goal(name, value, bound, goal, unit, ok)
