"""`monkeycode try`: the real server, three languages, and how fast it was."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.live import Live

from monkeycode_lsp import config, settings
from monkeycode_lsp.cli import client, editors, fetch, options, terminal, watch
from monkeycode_lsp.cli.client import Client
from monkeycode_lsp.cli.options import Chosen
from monkeycode_lsp.cli.samples import SAMPLES, Sample
from monkeycode_lsp.cli.watch import Seen
from monkeycode_lsp.cli.why import outcomes_folder
from monkeycode_lsp.errors import EngineError, MonkeyCodeError

_AGAIN = "monkeycode try --yes"


@click.command("try")
@options.engine_options
@click.option("--yes", is_flag=True, help="Download the model without a question.")
def trial(*, yes: bool, **chosen: Any) -> None:
    """See suggestions arrive in Python, TypeScript and Go, from the real server.

    On first use the model is downloaded.  With --url an endpoint answers instead.
    """
    out = terminal.console()
    tree = options.overrides(Chosen(**chosen))
    resolved, problems = settings.load(tree)
    for problem in problems:
        click.echo(f"Setting {problem}", err=True)
    out.print(_who_answers(resolved, out, yes=yes), markup=False)
    asyncio.run(_show_all(tree, out))
    out.print("To have this in your editor:\n", style="bold")
    for editor in editors.EDITORS:
        out.print(editors.text(editor), markup=False)


def _who_answers(resolved: config.Config, out: Console, *, yes: bool) -> str:
    """One line about the engine, after what it needs is here.  Raises what is missing, with its remedy."""
    from monkeycode_lsp.engines import choose  # noqa: PLC0415 - slow
    from monkeycode_lsp.engines.absent import AbsentEngine  # noqa: PLC0415 - as above

    engine = choose.engine(resolved, lambda _error: None)
    if isinstance(engine, AbsentEngine):
        asyncio.run(engine.ready())  # raises the reason
    if resolved.engine == "scripted":
        return "Answers come from the scripted engine: it says what it is told, and nothing of it is real."
    if choose.is_remote(resolved):
        return f"Answers come from {watch.endpoint_name(resolved.remote.endpoints)}."
    watch.require_runtime(resolved.local)
    path = fetch.local_model(resolved.local, out, yes=yes, again=_AGAIN)
    return f"Answers come from {path.name} on this machine."
