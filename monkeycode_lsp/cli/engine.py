"""`monkeycode engine`: what runs models on this machine, and how to get it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click
from rich.console import Console

from monkeycode_lsp import settings
from monkeycode_lsp.cli import place, runtimes, terminal
from monkeycode_lsp.errors import EngineUnavailableError
from monkeycode_lsp.models import build, hardware, package_client

BUILD_TIME = "five to ten minutes on two cores"


@click.group()
def engine() -> None:
    """Install the local engine; see what is installed."""


@engine.command()
@click.option("--print", "only_print", is_flag=True, help="Show the command and run nothing.")
@click.option("--portable", is_flag=True, help="A build that other machines of this kind can run too.")
@click.option("--rebuild", is_flag=True, help="Build again, though it is installed.")
@click.option("--yes", is_flag=True, help="Without a question.")
@click.pass_context
def install(ctx: click.Context, *, only_print: bool, portable: bool, rebuild: bool, yes: bool) -> None:
    """Build the full engine for this machine's hardware."""
    client = package_client.installer()
    if client is None:
        raise EngineUnavailableError("Neither pip nor uv is here to install anything.", remedy="Run `python -m ensurepip` and try again.")
    command = build.command(hardware.probe(), installer=client, portable=portable, rebuild=rebuild)
    line = build.render(command)
    if only_print:
        for words in (command.reason, *command.notes):
            click.echo(f"# {words}", err=True)
        click.echo(line)
        return
    out = terminal.console()
    for words in (command.reason, *command.notes):
        out.print(words, markup=False)
    out.print(line, style="bold", markup=False, soft_wrap=True)
    if command.compiles:
        out.print(f"This compiles llama.cpp: {BUILD_TIME}.", markup=False)
    if not (yes or _agreed(out)):
        return
    code = build.run(command, on_line=lambda text: out.print(text, style="dim", markup=False, soft_wrap=True))
    if code:
        raise EngineUnavailableError(
            f"The installation failed with exit code {code}; its last lines say why.",
            remedy=f"The prebuilt engine needs no compiler: {package_client.install_line('prebuilt')}",
        )
    ctx.exit(_tell(asyncio.run(runtimes.look(settings.load(workspace=place.settings_folder(Path.cwd()))[0].local)), out))


@engine.command("list")
@click.pass_context
def list_engines(ctx: click.Context) -> None:
    """What is installed, and whether it passes its self-test with the model that is here."""
    ctx.exit(_tell(asyncio.run(runtimes.look(settings.load(workspace=place.settings_folder(Path.cwd()))[0].local)), terminal.console()))


def _agreed(out: Console) -> bool:
    if not (sys.stdin.isatty() and out.is_terminal):
        raise EngineUnavailableError("Nothing was installed: nobody is here to agree.", remedy="Run it with --yes.")
    return click.confirm("Run it?", default=True)


def _tell(found: tuple[runtimes.Runtime, ...], out: Console) -> int:
    table = terminal.table("engine", "version", "state", "hardware")
    for runtime in found:
        state = terminal.plain(runtime.state, style={True: "green", False: "red", None: "yellow"}[runtime.works])
        table.add_row(runtime.title, runtime.version or "-", state, ", ".join(runtime.hardware) or "-")
    out.print(table)
    for runtime in found:
        if runtime.remedy:
            out.print(runtime.remedy, markup=False, soft_wrap=True)
    return 0 if any(runtime.works is not False and runtime.installed for runtime in found) else 1
