"""The report of `monkeycode replay` as sentences and tables.  Shares are in %, everything that is counted for 100 keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from rich.console import Console
from rich.text import Text

from monkeycode_lsp.bench.figures import Spread
from monkeycode_lsp.bench.replay.report import Goal, Report, System
from monkeycode_lsp.bench.replay.simulate import AT_ONCE, PRODUCT
from monkeycode_lsp.cli import replay_words, terminal

_CAPTION = "Shares are in %; all else is counted for 100 keys."
_TENTH = 0.1
_BIG_MS = 10.0


class _Row(msgspec.Struct, frozen=True):
    name: str
    value: str
    says: bool
    """False: nothing of the kind happened."""


def show(report: Report, out: Console) -> None:
    """What came of it in sentences, each system's figures, what the words mean, and the goals if they were asked for."""
    rates = {system.rates.system: system.rates for system in report.systems}
    if PRODUCT in rates:
        out.print(replay_words.summary(report, rates[PRODUCT], rates.get(AT_ONCE)), markup=False)
        out.print()
    out.print(replay_words.how(report.setup), markup=False)
    out.print(_CAPTION, markup=False)
    out.print()
    _figures(report.systems, out)
    if report.not_judged:
        out.print(f"\nThe goals are not judged: {report.not_judged}.", markup=False)
    elif report.goals:
        out.print()
        _goals(report.goals, out)


def _figures(systems: Sequence[System], out: Console) -> None:
    """Rows with nothing in them are left out, and words that then do not occur."""
    shown = terminal.table("", *(system.rates.system for system in systems))
    shown.columns[0].no_wrap = True
    names: list[str] = []
    for rows in zip(*map(_rows, systems), strict=True):
        if any(row.says for row in rows):
            names.append(rows[0].name.strip())
            shown.add_row(rows[0].name, *(row.value for row in rows))
    out.print(shown)
    if words := tuple(word for word in replay_words.LEGEND if word in names):
        out.print()
        out.print(replay_words.legend(words), markup=False)


def _goals(goals: Sequence[Goal], out: Console) -> None:
    shown = terminal.table("goal", "measured", "wanted", "")
    for goal in goals:
        wanted = f"{'≤' if goal.bound == 'most' else '≥'} {_in_unit(goal.goal, goal.unit)}"
        shown.add_row(goal.name, _in_unit(goal.value, goal.unit), wanted, _verdict(goal))
    out.print(shown)


def _rows(system: System) -> Iterator[_Row]:
    rates = system.rates

    def counted(name: str, n: int) -> _Row:
        return _per_key(name, n / rates.keys if rates.keys else None)

    yield _per_key("requests", rates.requests_per_key)
    yield _per_key("aborted", rates.aborted_per_key)
    yield _part("useful work", rates.useful)
    yield _per_key("looked ahead", rates.background_per_key)
    yield _per_key("fresh", rates.fresh_per_key)
    yield _part("  compared with naive", system.fresh_ratio)
    yield _part("  without the backend", rates.recalled_of_asks)
    yield from (counted(f"  {origin}", rates.fresh_by_origin.get(origin, 0)) for origin in ("typed-through", "memory", "disk", "shared"))
    yield _part("  not typed next", rates.not_typed_next)
    yield counted("  adopted", rates.fresh_by_origin.get("adopted", 0))
    yield _per_key("stale", rates.stale_per_key)
    yield counted("wrong hits", rates.wrong_hits)
    yield counted("failed asks", rates.failed)
    drafts = [counted("", n) for n in (rates.drafts, rates.drafts_confirmed)]
    yield _Row("drafts offered / confirmed", " / ".join(draft.value for draft in drafts), drafts[0].says)
    yield _part("chances kept", rates.chances_kept)
    yield _part("needless requests suppressed", rates.needless_suppressed)
    yield _waits("text after ms, p50/p90/p99", rates.p50_ms, rates.p90_ms, rates.p99_ms)
    yield _waits("reply after ms, no backend", *_spread(system.recalled_ms))


def _per_key(name: str, rate: float | None) -> _Row:
    if not rate:
        return _Row(name, "-" if rate is None else "0", says=False)
    per_100 = 100 * rate
    return _Row(name, f"{per_100:.1f}" if per_100 >= _TENTH else f"under {_TENTH}", says=True)


def _part(name: str, share: float | None) -> _Row:
    return _Row(name, _share(share), says=share is not None and share > 0)


def _waits(name: str, *values: float | None) -> _Row:
    if None in values:
        return _Row(name, "-", says=False)
    return _Row(name, " / ".join(_ms(ms) for ms in values if ms is not None), says=True)


def _ms(ms: float) -> str:
    return f"{ms:.0f}" if ms >= _BIG_MS or ms < _TENTH else f"{ms:.1f}"


def _spread(spread: Spread | None) -> tuple[float | None, ...]:
    return (None,) if spread is None else (spread.p50, spread.p90, spread.p99)


def _verdict(goal: Goal) -> Text:
    if goal.ok is None:
        return terminal.plain("not measured")
    return terminal.plain("met", style="green") if goal.ok else terminal.plain("not met", style="bold red")


def _in_unit(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    match unit:
        case "share":
            return _share(value)
        case "ms":
            return f"{value:.1f} ms"
        case _:
            return str(int(value)) if value == int(value) else f"{value:.2f}"


def _share(value: float | None) -> str:
    """Worse than nothing is shown as nothing."""
    return "-" if value is None else f"{100 * max(0.0, value):.1f} %"
