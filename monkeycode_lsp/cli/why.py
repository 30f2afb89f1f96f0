"""`monkeycode why`: how the last asks of all editors ended."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.text import Text

from monkeycode_lsp import folders
from monkeycode_lsp.cli import terminal
from monkeycode_lsp.domain import Fate, Outcome
from monkeycode_lsp.observe import outcomes

_STYLES = {"shown": "green", "failed": "red", "gated": "yellow", "empty": "yellow", "quiet": "yellow"}
_UNTOLD = frozenset({"", Fate.OPEN.value, Fate.CONTINUED.value})
_LEAST_MS = 1.0
"""A stage below tells nothing; `--json` has it."""
_INDENT = 10
_EMPTY = (
    "No editor has asked yet. Does it start the server? Neovim: `:checkhealth vim.lsp`; Helix: `hx --health`. "
    "`monkeycode doctor` prints the lines to paste with the full path. "
    "(Asks of editors only; they are written down about a second late.)"
)


def folder() -> Path:
    """Where the servers of this user keep their outcomes."""
    return folders.state() / outcomes.FOLDER


@click.command()
@click.option("-n", "n", type=click.IntRange(min=1), default=20, show_default=True, help="How many, the newest last.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
def why(*, n: int, as_json: bool) -> None:
    """Why the last suggestions came, or did not: the newest last.

    "Sure" is how likely the model held what it said, per token (0: certain), and the chance that you want it.
    Servers write this down about a second late.
    """
    found = outcomes.load(folder())[-n:]
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
        return
    out = terminal.console()
    if not found:
        out.print(_EMPTY, markup=False)
    elif terminal.is_narrow(out):
        _tell_narrowly(found, out)
    else:
        _tell_widely(found, out)


def _tell_widely(found: Sequence[Outcome], out: Console) -> None:
    table = terminal.table("when", "place", "outcome", "why", "sure", "ms", "of which")
    for outcome in found:
        table.add_row(
            terminal.plain(_when(outcome)),
            terminal.plain(outcome.place),
            terminal.plain(_ended(outcome), style=_style(outcome)),
            terminal.plain(outcome.reason),
            sure(outcome),
            f"{outcome.total_ms:.1f}",
            stages(outcome),
        )
    out.print(table)


def _tell_narrowly(found: Sequence[Outcome], out: Console) -> None:
    for outcome in found:
        times = f"  {outcome.total_ms:.1f} ms  {sure(outcome)}".rstrip() + f"  {stages(outcome)}".rstrip()
        out.print(Text.assemble(f"{_when(outcome):<8}  {outcome.place}  ", (_ended(outcome), _style(outcome)), times))
        terminal.print_indented(out, outcome.reason, _INDENT)


def _ended(outcome: Outcome) -> str:
    return outcome.kind.value + ("" if outcome.fate in _UNTOLD else f", {outcome.fate}")


def sure(outcome: Outcome) -> str:
    """How sure the model was; empty: it did not say, or was not asked."""
    if outcome.confidence is None:
        return ""
    said = f"{outcome.confidence:.1f}".replace("-", "\N{MINUS SIGN}")
    return said if outcome.odds is None else f"{said}, {outcome.odds:.0%}"


def _style(outcome: Outcome) -> str:
    return _STYLES.get(outcome.kind.value, "")


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
