"""`monkeycode why`: how the last asks of all editors ended."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import click
import msgspec

from monkeycode_lsp import folders
from monkeycode_lsp.cli import terminal
from monkeycode_lsp.domain import Outcome
from monkeycode_lsp.observe import outcomes

_STYLES = {"shown": "green", "failed": "red", "gated": "yellow", "empty": "yellow"}
_LEAST_MS = 0.05


def folder() -> Path:
    """Where the servers of this user keep their outcomes."""
    return folders.state() / outcomes.FOLDER


@click.command()
@click.option("-n", "n", type=click.IntRange(min=1), default=20, show_default=True, help="How many, the newest last.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
def why(*, n: int, as_json: bool) -> None:
    """Why the last suggestions came, or did not: the newest last.

    Servers write this down every few seconds.
    """
    found = outcomes.load(folder())[-n:]
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
        return
    out = terminal.console()
    if not found:
        out.print(f"Nothing has been asked yet: there are no outcomes in {folder()}.", markup=False)
        return
    table = terminal.table("when", "place", "outcome", "why", "ms", "of which")
    for outcome in found:
        kind = outcome.kind.value
        table.add_row(
            terminal.plain(_when(outcome)),
            terminal.plain(outcome.place),
            terminal.plain(kind + (", accepted" if outcome.accepted else ""), style=_STYLES.get(kind, "")),
            terminal.plain(outcome.reason),
            f"{outcome.total_ms:.1f}",
            stages(outcome),
        )
    out.print(table)


def stages(outcome: Outcome) -> str:
    """The stages that took any time, with their milliseconds."""
    return " ".join(f"{stage} {ms:.1f}" for stage, ms in outcome.stages_ms.items() if ms >= _LEAST_MS)


def _when(outcome: Outcome) -> str:
    try:
        at = dt.datetime.fromtimestamp(outcome.at).astimezone()
    except (ValueError, OverflowError, OSError):  # a file that was damaged and still decodes
        return "?"
    today = dt.datetime.now().astimezone().date()
    return at.strftime("%H:%M:%S" if at.date() == today else "%Y-%m-%d %H:%M:%S")
