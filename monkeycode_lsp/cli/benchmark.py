"""`monkeycode benchmark`: what we cost, and whether what is suggested is worth accepting, beside others in the same run."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, get_args, get_type_hints

import click
import msgspec
from rich.console import Console

from monkeycode_lsp import config
from monkeycode_lsp.bench import context, engine, engine_report, load, load_report, load_stage, overhead, tabby
from monkeycode_lsp.bench.engine_stage import COMPETITORS, QUICK, Plan
from monkeycode_lsp.bench.quality import quant
from monkeycode_lsp.bench.quality import report as quality_report
from monkeycode_lsp.bench.quality import run as quality
from monkeycode_lsp.cli import answering, benchmark_quality, benchmark_tables, terminal
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
_INDEX_S = 0.003
_FILES = 10_000
_LOCAL = config.Local()
_LOAD = load_stage.Plan()
_APIS = get_args(get_type_hints(config.Endpoint)["api"])
_SCENARIOS = {"overhead": (), "load": tuple(load.PARTS), "engine": tuple(engine.PARTS), "quality": quality.PARTS, "context": ()}
"""With their parts."""

_OPTION_OF = {"peer": "overhead", "limit": "quality", "fresh": "quality", "details": "quality", "files_of_workspace": "context"}
"""The scenario of an option that only one has; the others are of `load`."""

R = TypeVar("R", bound=msgspec.Struct)
V = TypeVar("V")


def _words(context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    """Words with commas between them, each of which must be known."""
    parts = _SCENARIOS[context.params["scenario"]]
    known = {"only": parts, "against": (*COMPETITORS, "none")}[parameter.name or ""]
    words = tuple(word.strip() for word in value.split(",") if word.strip())
    for word in words:
        if word == "all" and known and parameter.name == "only":
            return ()
        if not known:
            raise click.BadParameter("This scenario has no parts.")
        if word not in known:
            raise click.BadParameter(f"{word} is none of {', '.join(known)}.")
    return words


def _of_scenario(context: click.Context, parameter: click.Parameter, value: V) -> V:
    """Of an option that would silently mean nothing elsewhere."""
    scenario = _OPTION_OF.get(parameter.name or "", "load")
    if value and context.params["scenario"] != scenario:
        raise click.BadParameter(f"This is for --scenario {scenario}.")
    return value


@click.command("benchmark")
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, resolve_path=True, path_type=Path))
@click.option("--scenario", type=click.Choice(list(_SCENARIOS)), default="overhead", show_default=True, is_eager=True)
@click.option("--compare-quant", is_flag=True, help="Compare the GGUF files FILES: memory, speed, quality.")
@click.option("--rounds", default=3, show_default=True, help="How often the systems take turns (overhead).")
@click.option("--asks", default=200, show_default=True, help="Asks a round (overhead), or in all (context).")
@click.option("--peer", default="", callback=_of_scenario, help=f"Command or path of an installed {tabby.NAME} to compare with (overhead).")
@click.option("--url", default="", callback=_of_scenario, help="Your endpoint; without it one of our own (load).")
@click.option(
    "--api", default="", callback=_of_scenario, type=click.Choice(["", *_APIS]), metavar="API", help=f"{', '.join(_APIS)} (load)."
)
@click.option("--api-key-env", default="", callback=_of_scenario, help="Variable that holds the key of your endpoint (load).")
@click.option("--servers", default=_LOAD.servers, show_default=True, type=click.IntRange(1, 64), help="Each with an editor (load).")
@click.option(
    "--rate", default=_LOAD.rate, show_default=True, type=click.FloatRange(0.1, 1000), help="Asks a second of all servers (load)."
)
@click.option("--seconds", default=_LOAD.seconds, show_default=True, type=click.FloatRange(1, 3600), help="Of arrivals, each way (load).")
@click.option("--model", default="", help="Catalogue name or GGUF file (engine, quality); its name at your endpoint (load).")
@click.option("--quick", is_flag=True, help="About a minute: does it all work? (engine)")
@click.option(
    "--only",
    "--part",
    default="",
    callback=_words,
    help=f"Some parts, with commas: {', '.join(engine.PARTS)} (engine); {', '.join(load.PARTS)} (load); {', '.join(quality.PARTS)} (quality).",
)
@click.option("--limit", default=0, callback=_of_scenario, type=click.IntRange(0), help="Most tasks of each part; 0: all (quality).")
@click.option(
    "--workspace",
    "files_of_workspace",
    default=0,
    callback=_of_scenario,
    type=click.IntRange(0, 1_000_000),
    help="Files of the workspace that is made; 0: 10,000 (context).",
)
@click.option("--fresh", is_flag=True, callback=_of_scenario, help="Forget what earlier runs have found (quality).")
@click.option("--details", is_flag=True, callback=_of_scenario, help="Show what was cut wrongly, and where we lost (quality).")
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
    peer: str,
    url: str,
    api: str,
    api_key_env: str,
    servers: int,
    rate: float,
    seconds: float,
    model: str,
    quick: bool,
    only: tuple[str, ...],
    limit: int,
    files_of_workspace: int,
    fresh: bool,
    details: bool,
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

    load: many servers on one endpoint, yours or one of our own: what they add, whether they keep up and stay small,
    what cancels and deaths cost.

    engine: the compiled engine beside llama-cpp-python called directly and a llama-server (xllamacpp).

    quality: the same model asked straight and through us, on tasks with tests; what is cut wrongly; what other files are
    good for.  It runs programs that a model wrote, each in a process with limits.  A run that was broken off goes on.
    It needs the compiled engine (all parts but gold) and `pip install 'monkeycode-lsp[bench]'`; the part crossfile
    downloads ten packages from the package index once (4 MB), of which nothing is installed or run.
    With --limit below 50 it shows what it does, and judges no rates.

    context: what it costs to look for what helps from other files, in a large workspace.
    """
    if bool(files) != compare_quant:
        raise click.UsageError("Files and --compare-quant belong together: `monkeycode benchmark --compare-quant FILE…`.")
    settings = config.Local(model=model, runtime="native", threads=threads, gpu_layers=gpu_layers, slots=slots)
    if compare_quant:
        _print(_compare(files, settings, holes), benchmark_tables.show_quant, as_json=as_json)
    elif scenario == "overhead":
        _print(_overhead(rounds, asks, peer), benchmark_tables.show_overhead, as_json=as_json)
    elif scenario == "load":
        endpoint = {"url": url, "api": api or "auto", "model": model, "apiKeyEnv": api_key_env}
        plan = load_stage.Plan(servers=servers, rate=rate, seconds=seconds)
        _print(_load(msgspec.convert(endpoint, config.Endpoint), plan, only), benchmark_tables.show_load, as_json=as_json)
    elif scenario == "quality":
        plan_of_quality = quality.Plan(parts=only or quality.PARTS, limit=limit, fresh=fresh)
        report = _quality(settings, plan_of_quality)
        _print(report, lambda report, out: benchmark_quality.show(report, out, details=details), as_json=as_json)
    elif scenario == "context":
        _print(_context(files_of_workspace or _FILES, asks), benchmark_tables.show_context, as_json=as_json)
    else:
        engine_plan = msgspec.structs.replace(QUICK if quick else Plan(), kills=kills)
        _print(_engine(settings, engine_plan, only, against), benchmark_tables.show_engine, as_json=as_json)


def _print(report: R, show: Callable[[R, Console], None], *, as_json: bool) -> None:
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(report)))
    else:
        show(report, terminal.console())


def _overhead(rounds: int, asks: int, peer: str) -> overhead.Report:
    program = tabby.find(peer) if peer else ""
    _say_how_long(_START_S + rounds * (_ROUND_S + asks * _ASK_S))
    return asyncio.run(overhead.run(rounds=rounds, n_asks=asks, peer=program))


def _load(endpoint: config.Endpoint, plan: load_stage.Plan, only: tuple[str, ...]) -> load_report.Report:
    if endpoint.url:
        if endpoint.api_key_env and not os.environ.get(endpoint.api_key_env):
            raise click.UsageError(f"The variable {endpoint.api_key_env} is not set, so there is no key.")
        settings = config.Config(engine="remote", remote=config.Remote(endpoints=(endpoint,)))
        _say(answering.prepare(settings, terminal.console(stderr=True), yes=False, again="", typed_url=True))
    elif endpoint.model or endpoint.api != "auto" or endpoint.api_key_env:
        raise click.UsageError("--model, --api and --api-key-env belong to your endpoint: give its address with --url.")
    return asyncio.run(load.run(endpoint, plan, only=only, say=_say))


def _engine(settings: config.Local, plan: Plan, only: tuple[str, ...], against: tuple[str, ...]) -> engine_report.Report:
    _need_the_engine()
    path = find_model(settings)
    if not only:
        _say_how_long(_QUICK_S if plan.quick else _ENGINE_S)
    return asyncio.run(engine.run(path, settings=settings, plan=plan, only=only, against=against, say=_say))


def _quality(settings: config.Local, plan: quality.Plan) -> quality_report.Report:
    model = None
    if set(plan.parts) - set(quality.WITHOUT_MODEL):
        _need_the_engine()
        model = find_model(settings)
    err = terminal.console(stderr=True)
    return asyncio.run(quality.run(model, plan, settings=config.Config(local=settings), say=lambda words: err.print(words, markup=False)))


def _context(n_files: int, asks: int) -> context.Report:
    _say_how_long(_START_S + n_files * _INDEX_S)
    return asyncio.run(context.run(n_files, asks))


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
