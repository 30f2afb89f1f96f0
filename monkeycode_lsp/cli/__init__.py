"""The command line.  Each command's module is imported when the command runs, so that `--help` and an editor's start are quick."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence

import click

import monkeycode_lsp
from monkeycode_lsp.cli.group import Group, Lazy

NAME = "monkeycode"
INTERRUPTED = 130

COMMANDS = {
    "serve": Lazy("monkeycode_lsp.cli.serve:serve", "Serve an editor: over stdio, TCP or WebSocket."),
    "try": Lazy("monkeycode_lsp.cli.trial:trial", "See completions in this terminal, in three languages."),
    "complete": Lazy("monkeycode_lsp.cli.complete:complete", "One suggestion for a place in a file."),
    "model": Lazy("monkeycode_lsp.cli.model:model", "List, fetch, check, convert and remove models."),
    "engine": Lazy("monkeycode_lsp.cli.engine:engine", "Install the local engine; see its status and log; stop it."),
    "doctor": Lazy("monkeycode_lsp.cli.doctor:doctor", "Find out what is missing or broken, and what mends it."),
    "why": Lazy("monkeycode_lsp.cli.why:why", "Why the last suggestions came, or did not."),
    "stats": Lazy("monkeycode_lsp.cli.stats:stats", "How often suggestions were shown and taken, and how fast."),
    "benchmark": Lazy("monkeycode_lsp.cli.benchmark:benchmark", "Measure the server and the local engine on this machine."),
    "replay": Lazy("monkeycode_lsp.cli.replay:replay", "Measure the server on recorded typing; record your own."),
    "cache": Lazy("monkeycode_lsp.cli.cache:cache", "Show what is kept of suggestions, and where; remove it."),
    "config": Lazy("monkeycode_lsp.cli.config:config", "Show the settings, their schema and their files."),
    "completion": Lazy("monkeycode_lsp.cli.completion:completion", "Print the script that completes commands in your shell."),
}


@click.group(NAME, cls=Group, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(monkeycode_lsp.__version__, prog_name=NAME)
def cli() -> None:
    """AI completions as ghost text in every editor that speaks LSP.

    Begin with `monkeycode try`; it ends with the lines to paste into your editor.
    """


def main() -> None:
    """The console command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a console that lacks a character shows another instead of a traceback
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Do what the arguments say; the exit code."""
    try:
        code = cli.main(args=list(arguments), prog_name=NAME, standalone_mode=False)
    except click.ClickException as exc:
        exc.show()
        return exc.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        return INTERRUPTED
    return code if isinstance(code, int) else 0
