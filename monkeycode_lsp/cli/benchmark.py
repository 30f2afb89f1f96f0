"""`monkeycode benchmark`: what the server and the local engine cost, beside a floor in the same run."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.table import Table

from monkeycode_lsp import config
from monkeycode_lsp.bench import local, overhead
from monkeycode_lsp.bench.figures import Spread
from monkeycode_lsp.cli import terminal
from monkeycode_lsp.cli.engine import BUILD_TIME
from monkeycode_lsp.engines.local import selftest
from monkeycode_lsp.engines.local.engine import find_model
from monkeycode_lsp.errors import EngineUnavailableError

# Roughly, on two cores.
_START_S = 5.0
_ROUND_S = 2.0
_ASK_S = 0.005
_LOCAL_ROUND_S = 20.0


@click.command("benchmark")
@click.option("--scenario", type=click.Choice(["overhead", "local"]), default="overhead", show_default=True)
@click.option("--rounds", default=3, show_default=True, help="How often the systems take turns.")
@click.option("--asks", default=200, show_default=True, help="Asks a round (overhead).")
@click.option("--model", default="", help="Catalogue name or GGUF file (local).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def benchmark(*, scenario: str, rounds: int, asks: int, model: str, as_json: bool) -> None:
    """Measure on this machine.

    overhead: the server beside a bare pygls server, both on an endpoint that answers at once.
    local: the compiled engine beside llama-cpp-python called directly.
    """
    report = _overhead(rounds, asks) if scenario == "overhead" else _local(model, rounds)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(report)))
        return
    out = terminal.console()
    out.print(_table(msgspec.structs.asdict(report)))
    out.print()
    out.print(_meaning(report), markup=False)


def _overhead(rounds: int, asks: int) -> overhead.Report:
    _say_how_long(_START_S + rounds * (_ROUND_S + asks * _ASK_S))
    return asyncio.run(overhead.run(rounds=rounds, n_asks=asks))


def _local(model: str, rounds: int) -> local.Report:
    settings = config.Local(model=model, runtime="native")
    if not selftest.is_installed():
        raise EngineUnavailableError("This scenario measures the compiled engine.", remedy=f"`monkeycode engine install` ({BUILD_TIME})")
    path: Path = find_model(settings)
    _say_how_long(rounds * _LOCAL_ROUND_S)
    return asyncio.run(local.run(path, rounds=rounds))


def _say_how_long(seconds: float) -> None:
    """To somebody who sits before a terminal, whatever becomes of the output."""
    err = terminal.console(stderr=True)
    if err.is_terminal:
        err.print(f"This takes about {10 * math.ceil(seconds / 10)} seconds.", markup=False)


def _meaning(report: overhead.Report | local.Report) -> str:
    if isinstance(report, local.Report):
        return "first: time to the first token of a warm prompt with one more letter."
    return (
        f"An ask costs {report.ask_ratio_p50:.2f} times what a bare pygls server with the same HTTP client costs (floor); "
        "repeated and typed-through asks are answered without the endpoint."
    )


def _table(figures: dict[str, Any]) -> Table:
    shown = terminal.table("figure", "n", "p50", "p90", "p99")
    for name, value in figures.items():
        for label, figure in value.items() if isinstance(value, dict) else [("", value)]:
            title = f"{name} {label}".strip().replace("_", " ")
            if isinstance(figure, Spread):
                shown.add_row(title, str(figure.n), *(f"{ms:.2f}" for ms in (figure.p50, figure.p90, figure.p99)))
            else:
                shown.add_row(title, "", f"{figure:.2f}" if isinstance(figure, float) else str(figure))
    return shown
