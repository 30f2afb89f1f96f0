"""`monkeycode doctor`: everything that may be missing or broken, looked at side by side, each with its remedy."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.text import Text

from monkeycode_lsp import settings
from monkeycode_lsp.cli import checks, editors, place, terminal
from monkeycode_lsp.cli.endpoint_report import EndpointReport
from monkeycode_lsp.cli.finding import Finding, State
from monkeycode_lsp.engines import choose

_MARKS = {State.OK: ("ok", "green"), State.NOTE: ("-", "dim"), State.WARNING: ("warning", "yellow"), State.BROKEN: ("BROKEN", "bold red")}

_INDENT = 4


class Report(msgspec.Struct, frozen=True):
    """What `--json` prints."""

    healthy: bool
    findings: tuple[Finding, ...]
    endpoints: tuple[EndpointReport, ...]
    editors: dict[str, str]


@click.command()
@click.option("--quick", is_flag=True, help="Load no model, and ask none: nothing is tested or measured.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@click.pass_context
def doctor(ctx: click.Context, *, quick: bool, as_json: bool) -> None:
    """Find out what is missing or broken, and what mends it; measure the engine, and advise.

    Without --quick each endpoint is sent about ten short requests, of which two have a thousand tokens.

    Exit code 1: something that is needed does not work.
    """
    resolved, problems = settings.load(workspace=place.settings_folder(Path.cwd()))
    out = terminal.console()
    if as_json or not out.is_terminal:
        checked = asyncio.run(checks.run_all(resolved, problems, quick=quick))
    else:
        with out.status("Looking …" if quick else "Looking: loading and measuring a model may take half a minute …"):
            checked = asyncio.run(checks.run_all(resolved, problems, quick=quick))
    healthy = not any(finding.state is State.BROKEN for finding in checked.findings)
    if as_json:
        report = Report(healthy, checked.findings, checked.endpoints, {editor.name: editors.text(editor) for editor in editors.here()})
        click.echo(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        _tell(checked.findings, _verdict(healthy=healthy, tested=not (quick and choose.kind(resolved) in {"local", "remote"})))
    ctx.exit(0 if healthy else 1)


def _verdict(*, healthy: bool, tested: bool) -> str:
    if not healthy:
        return "Something that is needed does not work: see the arrows."
    return (
        "All that is needed works." if tested else "Nothing that is needed is missing.  The engine was not tested; without --quick it is."
    )


def _tell(findings: Sequence[Finding], verdict: str) -> None:
    out = terminal.console()
    (_tell_narrowly if terminal.is_narrow(out) or not out.is_terminal else _tell_widely)(findings, out)
    out.print("\nFor your editor:\n", style="bold")
    for editor in editors.here():
        out.print(editors.text(editor), markup=False, soft_wrap=True)
    out.print(verdict, style="bold")


def _tell_widely(findings: Sequence[Finding], out: Console) -> None:
    table = terminal.table("", "what", "found")
    for finding in findings:
        mark, style = _MARKS[finding.state]
        table.add_row(terminal.plain(mark, style=style), terminal.plain(finding.subject), terminal.plain(_words(finding)))
    out.print(table)


def _tell_narrowly(findings: Sequence[Finding], out: Console) -> None:
    for finding in findings:
        mark, style = _MARKS[finding.state]
        words = _words(finding)
        head = Text.assemble((mark, style), f" {finding.subject}:")
        if "\n" not in words and len(head) + 1 + len(words) <= out.width:
            out.print(head.append(f" {words}"))
        else:
            out.print(head)
            terminal.print_indented(out, words, _INDENT)


def _words(finding: Finding) -> str:
    return f"{finding.found}\n→ {finding.remedy}" if finding.remedy else finding.found
