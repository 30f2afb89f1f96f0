"""`monkeycode benchmark`: what the server and the local engine cost, beside others in the same run."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click
import msgspec
from rich.console import Console

from monkeycode_lsp import config
from monkeycode_lsp.bench import engine, engine_report, overhead, quant
from monkeycode_lsp.bench.engine_stage import COMPETITORS, QUICK, Plan
from monkeycode_lsp.cli import benchmark_tables, terminal
from monkeycode_lsp.cli.engine import BUILD_TIME
from monkeycode_lsp.engines.local import selftest
from monkeycode_lsp.engines.local.engine import find_model
from monkeycode_lsp.errors import EngineUnavailableError

# Roughly, on two cores.
_START_S = 5.0
_ROUND_S = 2.0
_ASK_S = 0.005
_ENGINE_S = 360.0
_QUICK_S = 80.0
_HOLE_S = 2.5
_LOCAL = config.Local()

R = TypeVar("R", bound=msgspec.Struct)


def _words(_ctx: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    """Words with commas between them, each of which must be known."""
    known = {"only": tuple(engine.PARTS), "against": (*COMPETITORS, "none")}[parameter.name or ""]
    words = tuple(word.strip() for word in value.split(",") if word.strip())
    for word in words:
        if word not in known:
            raise click.BadParameter(f"{word} is none of {', '.join(known)}.")
    return words


@click.command("benchmark")
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, resolve_path=True, path_type=Path))
@click.option("--scenario", type=click.Choice(["overhead", "engine"]), default="overhead", show_default=True)
@click.option("--compare-quant", is_flag=True, help="Compare the GGUF files FILES: memory, speed, quality.")
@click.option("--rounds", default=3, show_default=True, help="How often the systems take turns (overhead).")
@click.option("--asks", default=200, show_default=True, help="Asks a round (overhead).")
@click.option("--model", default="", help="Catalogue name or GGUF file (engine).")
@click.option("--quick", is_flag=True, help="About a minute: does it all work? (engine)")
@click.option("--only", default="", callback=_words, help=f"Some parts, with commas: {', '.join(engine.PARTS)} (engine).")
@click.option(
    "--against", default=",".join(COMPETITORS), show_default=True, callback=_words, help="Whom to compare with, or none (engine)."
)
@click.option("--kills", default=0, help="Kill the engine process so often while servers ask (engine).")
@click.option("--holes", default=40, show_default=True, type=click.IntRange(1, 1000), help="Size of the quality sample (--compare-quant).")
@click.option("--threads", default=_LOCAL.threads, help="Of the engine; 0: physical cores.")
@click.option("--gpu-layers", default=_LOCAL.gpu_layers, show_default=True, help="-1: all that fit.")
@click.option("--slots", default=_LOCAL.slots, show_default=True, type=click.IntRange(1, 64), help="Generations at the same time.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def benchmark(
    *,
    files: tuple[Path, ...],
    scenario: str,
    compare_quant: bool,
    rounds: int,
    asks: int,
    model: str,
    quick: bool,
    only: tuple[str, ...],
    against: tuple[str, ...],
    kills: int,
    holes: int,
    threads: int,
    gpu_layers: int,
    slots: int,
    as_json: bool,
) -> None:
    """Measure on this machine.

    overhead: the server beside a bare pygls server, both on an endpoint that answers at once.
    engine: the compiled engine beside llama-cpp-python called directly and a llama-server (xllamacpp).
    """
    if bool(files) != compare_quant:
        raise click.UsageError("Files and --compare-quant belong together: `monkeycode benchmark --compare-quant FILE…`.")
    settings = config.Local(model=model, runtime="native", threads=threads, gpu_layers=gpu_layers, slots=slots)
    if compare_quant:
        _print(_compare(files, settings, holes), benchmark_tables.show_quant, as_json=as_json)
    elif scenario == "overhead":
        _print(_overhead(rounds, asks), benchmark_tables.show_overhead, as_json=as_json)
    else:
        plan = msgspec.structs.replace(QUICK if quick else Plan(), kills=kills)
        _print(_engine(settings, plan, only, against), benchmark_tables.show_engine, as_json=as_json)


def _print(report: R, show: Callable[[R, Console], None], *, as_json: bool) -> None:
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(report)))
    else:
        show(report, terminal.console())


def _overhead(rounds: int, asks: int) -> overhead.Report:
    _say_how_long(_START_S + rounds * (_ROUND_S + asks * _ASK_S))
    return asyncio.run(overhead.run(rounds=rounds, n_asks=asks))


def _engine(settings: config.Local, plan: Plan, only: tuple[str, ...], against: tuple[str, ...]) -> engine_report.Report:
    _need_the_engine()
    path = find_model(settings)
    if not only:
        _say_how_long(_QUICK_S if plan.quick else _ENGINE_S)
    return asyncio.run(engine.run(path, settings=settings, plan=plan, only=only, against=against, say=_say))


def _compare(files: tuple[Path, ...], settings: config.Local, holes: int) -> quant.Report:
    _need_the_engine()
    _say_how_long(len(files) * (_START_S + holes * _HOLE_S))
    return asyncio.run(quant.compare(files, settings=settings, n=holes, say=_say))


def _need_the_engine() -> None:
    if not selftest.is_installed():
        raise EngineUnavailableError("This measures the compiled engine.", remedy=f"`monkeycode engine install` ({BUILD_TIME})")


def _say_how_long(seconds: float) -> None:
    """To somebody who sits before a terminal, whatever becomes of the output."""
    _say(f"This takes about {10 * math.ceil(seconds / 10)} seconds.")


def _say(words: str) -> None:
    err = terminal.console(stderr=True)
    if err.is_terminal:
        err.print(words, markup=False)
