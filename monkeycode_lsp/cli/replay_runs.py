"""Runs what `monkeycode replay` is asked for: simulated or in real time, against an oracle or the user's own engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from monkeycode_lsp import config, settings
from monkeycode_lsp.cli import answering, options, place, terminal
from monkeycode_lsp.cli.options import Chosen

if TYPE_CHECKING:
    from monkeycode_lsp.bench.replay.observed import Observed, Typed
    from monkeycode_lsp.bench.replay.oracle import Oracle
    from monkeycode_lsp.bench.replay.realtime import Backend
    from monkeycode_lsp.bench.replay.trace import Trace
    from monkeycode_lsp.engines.base import Engine

Told = Callable[[int, int], None]
"""Hears how many keys were typed, of how many."""


class Asked(msgspec.Struct, frozen=True):
    """How to replay, from the command line."""

    real_time: bool
    engine: Literal["oracle", "configured"]
    latency_ms: float
    q: float
    seed: int
    editor_delay_ms: float
    speed: float
    systems: tuple[str, ...]
    settings: tuple[str, ...]


def observe(trace: Trace, how: Asked, engine: Engine | None, told: Told) -> list[Observed]:
    """What each of the systems does while the trace is typed.  `engine`: the user's own; None: an oracle."""
    tree = options.overrides(Chosen(settings=how.settings))
    return asyncio.run(_in_real_time(trace, how, tree, engine, told)) if how.real_time else _simulated(trace, how, tree, told)


def _simulated(trace: Trace, how: Asked, tree: dict[str, Any], told: Told) -> list[Observed]:
    from monkeycode_lsp.bench.replay.simulate import simulate  # noqa: PLC0415 - slow, and `--help` needs none of it

    product, _ = config.decode(tree)
    n_keys = len(trace.keys)

    def one(number: int, system: str) -> Observed:
        return simulate(
            trace,
            system,
            latency_s=how.latency_ms / 1e3,
            q=how.q,
            seed=how.seed,
            editor_s=how.editor_delay_ms / 1e3,
            settings=product,
            progress=lambda done, _all: told(number * n_keys + done, len(how.systems) * n_keys),
        )

    return [one(number, system) for number, system in enumerate(how.systems)]


async def _in_real_time(trace: Trace, how: Asked, tree: dict[str, Any], engine: Engine | None, told: Told) -> list[Observed]:
    from monkeycode_lsp.bench.replay import realtime  # noqa: PLC0415 - slow, and `--help` needs none of it
    from monkeycode_lsp.bench.replay.oracle import OracleEngine  # noqa: PLC0415 - slow, and `--help` needs none of it
    from monkeycode_lsp.bench.replay.watched import WatchedEngine  # noqa: PLC0415 - slow, and `--help` needs none of it
    from monkeycode_lsp.cli.complete import Overheard  # noqa: PLC0415 - slow, and `--help` needs none of it

    def backend(oracle: Oracle, typed: Sequence[Typed]) -> Backend:
        if engine is None:
            return OracleEngine(oracle, latency_s=how.latency_ms / 1e3)
        return WatchedEngine(engine, oracle, typed, language=trace.language)

    try:
        if engine is not None:
            await Overheard(engine, lambda _text: None).ready()
        return await realtime.replay(
            trace, how.systems, backend, q=how.q, seed=how.seed, editor_s=how.editor_delay_ms / 1e3, settings=tree, progress=told
        )
    finally:
        if engine is not None:
            await engine.aclose()


def configured(how: Asked) -> Engine:
    """The user's own engine.  Raises what is missing, in words."""
    from monkeycode_lsp.engines import choose  # noqa: PLC0415 - slow, and `--help` needs none of it

    tree = options.overrides(Chosen(settings=how.settings))
    resolved, problems = settings.load(tree, place.settings_folder(Path.cwd()))
    for problem in problems:
        click.echo(f"Setting {problem}", err=True)
    err = terminal.console(stderr=True)
    err.print(answering.prepare(resolved, err, yes=False, again="monkeycode model pull", typed_url=False), markup=False)
    return choose.engine(resolved, lambda error: click.echo(str(error), err=True))
