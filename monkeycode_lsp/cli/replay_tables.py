"""The report of `monkeycode replay` as tables."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from monkeycode_lsp.bench.figures import Spread
from monkeycode_lsp.bench.replay.report import Goal, Report, Setup, System
from monkeycode_lsp.cli import terminal

Row = tuple[str, str]


def show(report: Report, out: Console) -> None:
    """How it was replayed, each system's figures, then the goals."""
    out.print(how(report.setup), markup=False)
    out.print()
    shown = terminal.table("", *(system.rates.system for system in report.systems))
    for rows in zip(*(tuple(_rows(system)) for system in report.systems), strict=True):
        shown.add_row(rows[0][0], *(value for _, value in rows))
    out.print(shown)
    if report.goals:
        out.print()
        goals = terminal.table("goal", "measured", "wanted", "")
        for goal in report.goals:
            wanted = f"{'≤' if goal.bound == 'most' else '≥'} {_in_unit(goal.goal, goal.unit)}"
            goals.add_row(goal.name, _in_unit(goal.value, goal.unit), wanted, _verdict(goal))
        out.print(goals)


def how(setup: Setup) -> str:
    """One line about how it was replayed."""
    behind = (
        "your own engine"
        if setup.engine == "configured"
        else f"a backend that takes {setup.latency_ms:g} ms and is right at {setup.q:.0%} of the places"
    )
    played = "real servers in real time" if setup.mode == "real time" else "simulated"
    faster = f", {setup.speed:g} times as fast" if setup.speed != 1 else ""
    return f"{setup.trace}: {setup.keys} keys from {setup.first_key} within {_lasting(setup.seconds)}{faster}; {played}, with {behind}"


def _lasting(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 3 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def _rows(system: System) -> Iterator[Row]:
    rates = system.rates
    yield "requests per key", _number(rates.requests_per_key)
    yield "aborted per key", _number(rates.aborted_per_key)
    yield "looked ahead per key", _number(rates.background_per_key)
    yield "useful work", _share(rates.useful)
    yield "fresh per key", _number(rates.fresh_per_key)
    yield "  of those without debounce and cache", _times(system.fresh_ratio)
    yield "stale per key", _number(rates.stale_per_key)
    yield "fresh without the backend", _share(rates.recalled_of_asks)
    yield from ((f"  {origin}", str(rates.fresh_by_origin.get(origin, 0))) for origin in ("typed-through", "memory", "disk", "shared"))
    yield "  not typed next", _share(rates.not_typed_next)
    yield "adopted", str(rates.fresh_by_origin.get("adopted", 0))
    yield "wrong hits", str(rates.wrong_hits)
    yield "failed asks", str(rates.failed)
    yield "drafts offered / confirmed", f"{rates.drafts} / {rates.drafts_confirmed}"
    yield "chances kept", _share(rates.chances_kept)
    yield "needless requests suppressed", _share(rates.needless_suppressed)
    yield "key to text, p50 / p90 / p99", _milliseconds(rates.p50_ms, rates.p90_ms, rates.p99_ms)
    yield "recalled: ask to reply, p50 / p90 / p99", _spread(system.recalled_ms)


def _verdict(goal: Goal) -> Text:
    if goal.ok is None:
        return terminal.plain("")
    return terminal.plain("met", style="green") if goal.ok else terminal.plain("not met", style="bold red")


def _in_unit(value: float | None, unit: str) -> str:
    match unit:
        case "share":
            return _share(value)
        case "times":
            return _times(value)
        case "ms":
            return "-" if value is None else f"{value:.1f} ms"
        case _:
            return _number(value)


def _number(value: float | None) -> str:
    return "-" if value is None else str(int(value)) if value == int(value) else f"{value:.2f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} times"


def _milliseconds(*values: float | None) -> str:
    return " / ".join("-" if value is None else f"{value:.0f}" for value in values) + " ms"


def _spread(spread: Spread | None) -> str:
    return "-" if spread is None else f"{spread.p50:.1f} / {spread.p90:.1f} / {spread.p99:.1f} ms"
