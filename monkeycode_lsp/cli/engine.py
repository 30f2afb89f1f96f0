"""`monkeycode engine`: what runs models on this machine, how to get it, and the processes that run now."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click
import msgspec
from rich.console import Console

from monkeycode_lsp import folders, settings
from monkeycode_lsp.cli import place, processes, runtimes, terminal
from monkeycode_lsp.engines.local import selftest, verdict
from monkeycode_lsp.engines.local.host import control, logfile, registry
from monkeycode_lsp.errors import EngineUnavailableError
from monkeycode_lsp.models import build, hardware, package_client

NOTHING_RUNS = "No engine process runs."
BUILD_TIME = "five to ten minutes on two cores"


@click.group()
def engine() -> None:
    """Install the local engine; see what is installed, what runs and what it logs; stop it."""


@engine.command()
@click.option("--print", "only_print", is_flag=True, help="Show the command and run nothing.")
@click.option("--portable", is_flag=True, help="A build that other machines of this kind can run too.")
@click.option("--rebuild", is_flag=True, help="Build again, though it is installed.")
@click.option("--yes", is_flag=True, help="Without a question.")
@click.pass_context
def install(ctx: click.Context, *, only_print: bool, portable: bool, rebuild: bool, yes: bool) -> None:
    """Build the full engine for this machine's hardware."""
    if not (only_print or rebuild) and selftest.is_installed():
        if version := _loadable():
            what = f"llama-cpp-python {version}"
            click.echo(f"The full engine is installed already ({what}).  To build it anew: monkeycode engine install --rebuild")
            return
        rebuild = True
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
    """What is installed, and whether it passes its self-test.

    That is done with the model that is here.
    """
    ctx.exit(_tell(asyncio.run(runtimes.look(settings.load(workspace=place.settings_folder(Path.cwd()))[0].local)), terminal.console()))


@engine.command()
@click.option("--json", "as_json", is_flag=True, help="For other programs.")
def status(*, as_json: bool) -> None:
    """The engine processes that run, and what they have done."""
    seen = asyncio.run(control.look())
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode([processes.entry(one) for one in seen], enc_hook=str)))
    elif not seen:
        click.echo(NOTHING_RUNS)
    else:
        terminal.console().print(processes.shown(seen))


@engine.command()
@click.argument("pid", type=int, required=False)
@click.option("--all", "every", is_flag=True, help="All of them, if there are several.")
def stop(*, pid: int | None, every: bool) -> None:
    """End an engine process.  The next ask starts another.

    That one tries anew what is slower because a start failed once.
    """
    verdict.forget()
    running = [(place, note) for place, note in registry.all_notes() if pid in {None, note.pid}]
    if pid is not None and not running:
        raise EngineUnavailableError(f"No engine process has the number {pid}.", remedy="See `monkeycode engine status`.")
    if len(running) > 1 and not every:
        numbers = ", ".join(str(note.pid) for _, note in running)
        raise EngineUnavailableError(f"Several engine processes run: {numbers}.", remedy="Name one, or use --all.")
    said = [line for line in asyncio.run(processes.stop(running)) if line]
    click.echo("\n".join(said) or NOTHING_RUNS)


@engine.command()
@click.option("-n", "--lines", "n_lines", type=click.IntRange(min=1), default=40, show_default=True, help="How many of the last lines.")
def log(*, n_lines: int) -> None:
    """The last lines of the newest engine process's log."""
    logs = logfile.newest(folders.state())
    if not logs:
        click.echo("No engine process has written a log yet.")
        return
    click.echo(f"# {logs[0]}", err=True)
    for line in logfile.tail(logs[0], n_lines):
        click.echo(line)


def _loadable() -> str:
    """The version of the library that is installed; empty where it cannot be loaded, which the user is told."""
    try:
        return asyncio.run(selftest.build_info()).version
    except EngineUnavailableError as exc:
        click.echo(f"{exc.message}\nSo it is built anew.", err=True)
        return ""


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
