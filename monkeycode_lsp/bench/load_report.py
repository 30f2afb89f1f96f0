"""What the load benchmark tells: parts with the times of each way, and goals that are met or missed.  Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from monkeycode_lsp.bench.engine_report import Figure, at_least, at_most
from monkeycode_lsp.bench.figures import Spread

THROUGH, STRAIGHT = "through monkeycode", "straight"

ADDED_P99_MS = 15.0
SATURATION_SHARE = 0.95
CLOSED_MS = 200.0
MOST_LOST = 1.0
BACK_S = 10.0
MORE_FILES, MORE_THREADS, MORE_MB = 4.0, 1.0, 8.0
"""A kept connection or two; and the documents themselves grow by a line with each ask."""


class Told(NamedTuple):
    """One ask, measured from the moment in which it was written."""

    ms: float
    kind: Literal["text", "empty", "late", "error", "silence"]
    """late: no text by the deadline of an ask.  silence: no reply at all."""
    late_ms: float = 0.0
    """How much later than planned it was written: the client's own trouble."""


class Size(NamedTuple):
    """Of one process."""

    files: int
    threads: int
    mb: float


class Part(msgspec.Struct, frozen=True, rename="camel"):
    """One situation."""

    name: str
    about: str
    """What was done, in one sentence."""
    systems: dict[str, Spread] = {}
    """Milliseconds of each way."""
    figures: tuple[Figure, ...] = ()
    left_out: str = ""
    """Why there are no figures; empty: there are."""


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """One run.  The field names are an interface: other programs read this JSON."""

    endpoint: str
    busy_cores: float | None
    """Processors that others kept busy before the run; None: the system does not tell."""
    cores: int
    servers: int
    rate: float
    seconds: float
    parts: tuple[Part, ...]
    version: int = 1

    @property
    def n_missed(self) -> int:
        """Goals that were not reached."""
        return sum(figure.ok is False for part in self.parts for figure in part.figures)


def count(told: Sequence[Told], *kinds: str) -> float:
    """Asks that ended so."""
    return float(sum(one.kind in kinds for one in told))


def spread(told: Sequence[Told]) -> Spread:
    """Of the asks that were answered, with text or without."""
    return Spread.of([one.ms for one in told if one.kind in {"text", "empty", "late"}] or [0.0])


def share_without_text(told: Sequence[Told]) -> float:
    """Of asks that did not fail otherwise."""
    return count(told, "empty", "late") / max(1, len(told))


def a_second(rate: float) -> str:
    """In words: `1 ask a second`."""
    return f"{rate:g} {'ask' if rate == 1 else 'asks'} a second"


def too_slow(told: Mapping[str, Sequence[Told]]) -> str:
    """In words, where asks of either way had no text by their deadline; empty: none."""
    n_late, n = (sum(map(of, told.values())) for of in (lambda one: count(one, "late"), len))
    if not n_late:
        return ""
    return f" {n_late:.0f} of {n} asks had no text by then: the endpoint is slower than `completion.deadlineMs`."


def failed(told: Sequence[Told]) -> Figure:
    """Of our servers."""
    return at_most(f"asks that failed, {THROUGH}", count(told, "error", "silence"), 0.0)


def arrivals(slices: Sequence[Mapping[str, Sequence[Told]]], *, judged: bool) -> tuple[Figure, ...]:
    """What our way adds to the straight one.  Not `judged`: of an endpoint of which we do not know how steady it is.

    `slices`: the asks of each way, of times that follow each other.
    """
    told = {way: [one for part in slices for one in part[way]] for way in (THROUGH, STRAIGHT)}
    ours, straight = spread(told[THROUGH]), spread(told[STRAIGHT])
    added = ours.p99 - straight.p99
    usual = statistics.median(spread(part[THROUGH]).p99 - spread(part[STRAIGHT]).p99 for part in slices)
    differences = (
        Figure("added, p50", ours.p50 - straight.p50, "ms"),
        at_most("added, p99", added, ADDED_P99_MS, "ms") if judged else Figure("added, p99", added, "ms"),
        Figure("added, p99, in the middle one of the time slices", usual, "ms"),
    )
    comparable = all(count(of_one, "text") > len(of_one) / 2 for of_one in told.values())
    late = Spread.of([one.late_ms for of_one in told.values() for one in of_one])
    return (
        *(differences if judged or comparable else ()),
        failed(told[THROUGH]),
        Figure(f"asks that failed, {STRAIGHT}", count(told[STRAIGHT], "error", "silence")),
        Figure(f"asks without text, {THROUGH}", share_without_text(told[THROUGH]), "share"),
        Figure(f"asks without text, {STRAIGHT}", share_without_text(told[STRAIGHT]), "share"),
        Figure("asks were written late by, p99", late.p99, "ms"),
    )


def saturation(rates: Mapping[str, Mapping[int, float]], *, judged: bool = True) -> tuple[Figure, ...]:
    """`rates`: answers a second, by how many asks were under way.  Not `judged`: there were too few."""
    best = {way: max(by_level.values()) for way, by_level in rates.items()}
    of_levels = [
        Figure(f"{way}, {n} under way", rate, "/s") for n in rates[THROUGH] for way in (THROUGH, STRAIGHT) for rate in [rates[way][n]]
    ]
    if not judged:
        return tuple(of_levels)
    share = best[THROUGH] / best[STRAIGHT] if best[STRAIGHT] else 0.0
    return (*of_levels, at_least("rate at saturation / straight", share, SATURATION_SHARE, "share"))


def cancels(closed_ms: Sequence[float], *, n: int, n_unsent: int) -> tuple[Figure, ...]:
    """`closed_ms`: of those that the endpoint saw leave; `n_unsent`: stopped before it saw them."""
    in_time = sum(ms <= CLOSED_MS for ms in closed_ms) + n_unsent
    return (
        at_least(f"closed within {CLOSED_MS:g} ms, of {n}", float(in_time), float(n)),
        Figure("closed after, most", max(closed_ms, default=0.0), "ms"),
        Figure("stopped before they were sent", float(n_unsent)),
        Figure("never closed", float(n - n_unsent - len(closed_ms))),
    )


def failover(told: Sequence[Told], *, back_s: float, share_after: float) -> tuple[Figure, ...]:
    """`back_s`: until the endpoint that returned is asked again; `share_after`: its share of the asks from then on."""
    return (
        at_most("asks without a reply", count(told, "silence"), 0.0),
        at_most("suggestions lost", count(told, "empty", "late", "error"), MOST_LOST),
        at_most("asked again after its return", back_s, BACK_S, "s"),
        Figure("its share from then on", share_after, "share"),
    )


def endurance(before: Size, after: Size, told: Sequence[Told]) -> tuple[Figure, ...]:
    """`told`: the asks that were not cancelled."""
    return (
        Figure("files after the warm-up", float(before.files)),
        at_most("files opened since", float(after.files - before.files), MORE_FILES),
        at_most("threads started since", float(after.threads - before.threads), MORE_THREADS),
        Figure("memory after the warm-up", before.mb, "MB"),
        at_most("memory taken since", after.mb - before.mb, MORE_MB, "MB"),
        failed(told),
        Figure("asks without text", share_without_text(told), "share"),
    )
