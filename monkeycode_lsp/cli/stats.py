"""`monkeycode stats`: how often something was shown, what became of it, and how long it took."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator, Mapping

import click
import msgspec
from rich.console import Console

from monkeycode_lsp import folders
from monkeycode_lsp.cli import terminal
from monkeycode_lsp.observe import figures, outcomes
from monkeycode_lsp.observe.figures import Figures, Quantiles, Summary

_DAY_S = 86_400.0
_EMPTY = "No editor has asked yet{when}. Suggestions are counted while you work; `monkeycode doctor` tells whether your editor starts the server."
_NONE = "\N{EN DASH}"
_FATES_UNKNOWN = "not known yet of any: it is when you type on, or take one"
_NOT_SURE = f"quiet {_NONE}: the engine does not tell how sure the model is, so nothing can be kept quiet (`monkeycode doctor`)."
_NO_MODEL = f"model {_NONE}: it ended before there was a suggestion: a rule said no, the engine was not ready, or it had nothing to say."
_NO_FATE = f"taken {_NONE}: of none of them it is known yet what became of it."
_FATES = {
    "accepted": "accepted",
    "typed": "typed to the end",
    "partial": "taken in part",
    "ignored": "passed over",
    "rejected": "rejected, or taken back",
}


@click.command()
@click.option("--days", type=click.FloatRange(min=0, min_open=True), help="Only of the last so many days.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
def stats(*, days: float | None, as_json: bool) -> None:
    """How often suggestions were shown, what became of them, and how long they took.

    Counted are the last thousand asks of each of your last eight editor windows; servers write them down about a
    second late. Nothing of this leaves your machine, and none of it is text of yours.
    """
    found = outcomes.load(folders.state() / outcomes.FOLDER)
    if days is not None:
        since = time.time() - days * _DAY_S
        found = [outcome for outcome in found if outcome.at >= since]
    summary = figures.summary(found)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(summary), indent=2).decode())
        return
    out = terminal.console()
    if summary.whole.n_asks + summary.whole.n_overtaken == 0:
        out.print(_EMPTY.format(when="" if days is None else f" in the last {days:g} days"), markup=False)
        return
    _tell(summary, out)


def _tell(summary: Summary, out: Console) -> None:
    whole = summary.whole
    out.print(
        f"{whole.n_asks:,} asks since {_day(summary.since)}, and {whole.n_overtaken:,} that newer ones overtook or the editor cancelled.",
        markup=False,
    )
    out.print()
    _tell_rates(whole, out)
    _tell_counts("Why nothing was shown", whole.not_shown, out)
    _tell_counts("What became of suggestions", {_FATES.get(fate, fate): n for fate, n in whole.fates.items()}, out)
    _tell_times(whole, out)
    if len(summary.groups) > 1:
        _tell_groups(summary, out)
    _tell_what_is_missing(summary, out)


def _tell_rates(whole: Figures, out: Console) -> None:
    rows = [
        ("shown, of all asks", _percent(whole.show_rate)),
        ("kept quiet, where the model said how sure it was", _percent(whole.quiet_rate)),
        *_taken(whole),
        *((f"still there after {after} s, of what was taken", _percent(share)) for after, share in whole.kept_rate.items()),
    ]
    table = terminal.table("rate", "")
    for name, rate in rows:
        table.add_row(terminal.plain(name), terminal.plain(rate))
    out.print(table)


def _taken(whole: Figures) -> Iterator[tuple[str, str]]:
    if not whole.n_suggestions:
        yield "taken", _FATES_UNKNOWN if whole.n_shown else _NONE
        return
    yield f"taken, of {whole.n_suggestions:,} suggestions whose fate is known", _percent(whole.taken_rate)
    yield "taken, of their characters", _percent(whole.taken_characters_rate)


def _tell_counts(title: str, counts: Mapping[str, int], out: Console) -> None:
    if not counts:
        return
    out.print()
    table = terminal.table(title, "")
    for name, n in counts.items():
        table.add_row(terminal.plain(name), f"{n:,}")
    out.print(table)


def _tell_times(whole: Figures, out: Console) -> None:
    rows: list[tuple[str, Quantiles | None]] = [
        ("whole, where something was shown", whole.total),
        ("first text of the engine", whole.first),
        *whole.stages.items(),
    ]
    out.print()
    table = terminal.table("ms", "p50", "p95", "asks")
    for name, times in rows:
        if times is not None:
            table.add_row(terminal.plain(name), f"{times.p50_ms:.1f}", f"{times.p95_ms:.1f}", f"{times.n:,}")
    out.print(table)


def _tell_groups(summary: Summary, out: Console) -> None:
    out.print()
    table = terminal.table("model", "language", "asks", "shown", "quiet", "taken", "p50 ms", "p95 ms")
    for group in summary.groups:
        one = group.figures
        times = (f"{one.total.p50_ms:.0f}", f"{one.total.p95_ms:.0f}") if one.total is not None else ("", "")
        name = group.model or _NONE
        rates = (_percent(one.show_rate), _percent(one.quiet_rate), _percent(one.taken_rate))
        table.add_row(terminal.plain(name), terminal.plain(group.language), f"{one.n_asks:,}", *rates, *times)
    out.print(table)


def _tell_what_is_missing(summary: Summary, out: Console) -> None:
    """Why there are cells with nothing but a dash."""
    figures = [summary.whole, *(group.figures for group in summary.groups)] if len(summary.groups) > 1 else [summary.whole]
    notes = []
    if any(one.n_shown and one.quiet_rate is None for one in figures):
        notes.append(_NOT_SURE)
    if len(summary.groups) > 1 and any(not group.model for group in summary.groups):
        notes.append(_NO_MODEL)
    if len(summary.groups) > 1 and any(one.n_shown and one.taken_rate is None for one in figures):
        notes.append(_NO_FATE)
    if notes:
        out.print()
    for note in notes:
        out.print(note, markup=False)


def _percent(rate: float | None) -> str:
    return _NONE if rate is None else f"{rate:.1%}"


def _day(at: float | None) -> str:
    try:
        return dt.datetime.fromtimestamp(at or 0.0).astimezone().strftime("%Y-%m-%d")
    except (ValueError, OverflowError, OSError):  # a file that was damaged and still decodes
        return "?"
