"""`monkeycode replay`: what the server does for somebody who types, measured on a recording of real typing."""

from __future__ import annotations

import itertools
import math
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from monkeycode_lsp.cli import options, place, replay_recording, replay_runs, replay_words, terminal
from monkeycode_lsp.cli.replay_runs import Asked, Told
from monkeycode_lsp.errors import MonkeyCodeError
from monkeycode_lsp.text import lf

if TYPE_CHECKING:
    from monkeycode_lsp.bench.replay.report import Report
    from monkeycode_lsp.bench.replay.trace import Trace

SYSTEMS = {"monkeycode": "monkeycode", "naive": "naive (asks at every key)", "fixed": "fixed (waits 200 ms)"}
"""What `--systems` says, and the names in the report."""
_REAL_KEYS = 300
_MOST_PAUSE_S = 3.0
_START_S = 2.0
"""Roughly: until a server answers, and its last answer is there."""
_GOALS = (
    "Judge the figures by the project's own goals, and exit with 1 if one is not met; not for fewer than 300 keys or an engine of your own."
)
_MOST_BYTES = 1024 * 1024
"""Of a file that is to be typed: days of typing."""


def _systems(_ctx: click.Context, _parameter: click.Parameter, value: str) -> tuple[str, ...]:
    words = tuple(dict.fromkeys(word.strip() for word in value.split(",") if word.strip()))
    for word in words:
        if word not in SYSTEMS:
            raise click.BadParameter(f"{word} is none of {', '.join(SYSTEMS)}.")
    if not words:
        raise click.BadParameter(f"Name some of {', '.join(SYSTEMS)}.")
    return tuple(SYSTEMS[word] for word in words)


class _Finite(click.FloatRange):
    """A range that `nan` is not in."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return number


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_OUTPUT = click.Path(dir_okay=False, allow_dash=True, path_type=Path)


@click.command("replay", epilog=f"\b\nWords of the report:\n{replay_words.legend()}")
@click.argument("trace", required=False, type=_FILE)
@click.option("--synthetic", type=_FILE, metavar="FILE", help="Instead of a trace: somebody types this file, with a seed.")
@click.option("--record", type=_OUTPUT, metavar="FILE", help="Serve an editor and record what is typed; see above.")
@click.option("--keys", "n_keys", type=click.IntRange(1), help=f"How many keys; all, or {_REAL_KEYS} in real time.")
@click.option("--from", "first", type=click.IntRange(0), default=0, help="The first of them, counted from 0.")
@click.option("--latency-ms", type=_Finite(1, 60_000), default=250, show_default=True, help="What the backend takes.")
@click.option("--q", type=_Finite(0, 1), default=0.3, show_default=True, help="How often the backend is right.")
@click.option("--seed", default=0, show_default=True, help="Of everything that is left to chance.")
@click.option("--editor-delay-ms", type=_Finite(0, 5_000), default=0, help="The editor asks so long after a key.")
@click.option(
    "--engine",
    type=click.Choice(["oracle", "configured"]),
    default="oracle",
    show_default=True,
    help="oracle: knows what is typed next, and says it or not; configured: your own engine, in real time.",
)
@click.option("--real-time", is_flag=True, help=f"Real servers over stdio, the keys at their times, pauses of {_MOST_PAUSE_S:g} s at most.")
@click.option("--speed", type=_Finite(0.1, 100), default=1, help="Type so many times faster.")
@click.option("--systems", default=",".join(SYSTEMS), show_default=True, callback=_systems, help="Which ones, with commas.")
@click.option("--goals", is_flag=True, help=_GOALS)
@options.setting_option
@click.option("--json", "json_file", type=_OUTPUT, metavar="FILE", help="Write all figures as JSON; - prints them.")
@click.option("--svg", "svg_file", type=_OUTPUT, metavar="FILE", help="Draw how soon text was there; - prints the drawing.")
@click.option("--stdio", is_flag=True, hidden=True)
@click.option("--clientProcessId", "client_pid", type=int, hidden=True)
@click.pass_context
def replay(
    ctx: click.Context,
    /,
    *,
    trace: Path | None,
    synthetic: Path | None,
    record: Path | None,
    n_keys: int | None,
    first: int,
    json_file: Path | None,
    svg_file: Path | None,
    goals: bool,
    stdio: bool,
    client_pid: int | None,
    **asked: Any,
) -> None:
    """Replay typing: how often is the backend asked, and when is text there?

    TRACE is a recording in the editing-traces format (JSON, also gzipped).  Without --real-time it is replayed on a clock of
    its own: the real pipeline, with a backend that says what was typed next with chance q.  Beside it the same keys go to a
    plain server that asks at every key (naive), and to one that waits 200 ms first (fixed).  The words of the report are below.

    --record FILE is for an editor, in place of `monkeycode serve`.  It serves as usual and writes the edits of the document
    that is edited most, with the text it began with, to FILE (or FILE-2 and so on if there is one), every two seconds and at
    the end, readable for you only.  Documents that are not served, such as .env files, are not recorded; once a setting
    excludes the document that was recorded, the file is removed.
    """
    del stdio, client_pid  # editors pass them
    n_sources = sum(source is not None for source in (trace, synthetic, record))
    if n_sources > 1:
        raise click.UsageError("Give only one of TRACE, --synthetic FILE and --record FILE.")
    if not n_sources:
        raise click.UsageError("Give a TRACE, --synthetic FILE or --record FILE.")
    how = Asked(**asked)
    if record is not None:
        if _is_stdout(record):
            raise click.UsageError("--record needs a file: standard output belongs to the editor.")
        ctx.exit(replay_recording.serve(record, how.settings))
    if not how.real_time and (how.engine == "configured" or how.speed != 1):
        raise click.UsageError("--engine configured and --speed belong to --real-time.")
    outputs = [file for file in (json_file, svg_file) if file is not None]
    if sum(map(_is_stdout, outputs)) > 1:
        raise click.UsageError("--json and --svg cannot both be printed.")
    for file in outputs:
        _must_be_writable(file)
    whole = _load(trace, how.seed) if trace is not None else _type(synthetic or Path(), how.seed)
    part = _part(whole, first, n_keys, how)
    report = _run(part, first, how, is_synthetic=trace is None, goals=goals)
    _write(report, json_file, svg_file)
    if not any(map(_is_stdout, outputs)):
        _show(report)
    ctx.exit(int(any(goal.ok is False for goal in report.goals)))


# What is typed


def _load(file: Path, seed: int) -> Trace:
    from monkeycode_lsp.bench.replay import load  # noqa: PLC0415 - `--record` needs none of it

    try:
        return load.load(file, seed=seed)
    except load.TraceError as exc:
        raise MonkeyCodeError(str(exc)) from exc


def _type(file: Path, seed: int) -> Trace:
    from monkeycode_lsp.bench.replay.synthetic import synthetic  # noqa: PLC0415 - as above

    data = _read(file)
    if len(data) > _MOST_BYTES:
        raise MonkeyCodeError(f"{file} is too large to be typed: it has more than {_MOST_BYTES // 1024} KiB.")
    try:
        text = lf(data.decode("utf-8-sig"))
    except UnicodeDecodeError as exc:
        raise MonkeyCodeError(f"{file} is not UTF-8 text.") from exc
    if not text.strip():
        raise MonkeyCodeError(f"{file} is empty: there is nothing to type.")
    return synthetic(text, file.name, seed, language=place.language(file))


def _read(file: Path) -> bytes:
    """No more than tells that it is too much."""
    try:
        if not stat.S_ISREG(file.stat().st_mode):  # a pipe or a device may never end, or never begin
            raise MonkeyCodeError(f"{file} cannot be typed: it is not a plain file.")
        with file.open("rb") as opened:
            return opened.read(_MOST_BYTES + 1)
    except OSError as exc:
        raise MonkeyCodeError(f"{file} cannot be read: {exc.strerror or exc}.") from exc


def _part(trace: Trace, first: int, n_keys: int | None, how: Asked) -> Trace:
    """What is replayed of it; in real time nobody waits for the author to come back from lunch."""
    from monkeycode_lsp.bench.replay.excerpt import excerpt  # noqa: PLC0415 - as above
    from monkeycode_lsp.bench.replay.trace import Key  # noqa: PLC0415 - as above

    if first >= len(trace.keys):
        raise MonkeyCodeError(f"{trace.name} has {len(trace.keys)} keys: --from must be less.")
    part = excerpt(trace, first, n_keys or (_REAL_KEYS if how.real_time else len(trace.keys)))
    if not how.real_time:
        return part
    gaps = (min(_MOST_PAUSE_S, after.at_s - before.at_s) / how.speed for before, after in zip(part.keys, part.keys[1:], strict=False))
    times = itertools.accumulate(gaps, initial=0.0)
    return msgspec.structs.replace(part, keys=tuple(Key(at, key.patches) for at, key in zip(times, part.keys, strict=True)))


# Replaying


def _run(trace: Trace, first: int, how: Asked, *, is_synthetic: bool, goals: bool) -> Report:
    from monkeycode_lsp.bench.replay import report  # noqa: PLC0415 - as above

    setup = report.Setup(
        trace=trace.name,
        language=trace.language,
        first_key=first,
        keys=len(trace.keys),
        seconds=round(trace.keys[-1].at_s, 3),
        mode="real time" if how.real_time else "simulated",
        engine=how.engine,
        latency_ms=how.latency_ms,
        q=how.q,
        seed=how.seed,
        editor_delay_ms=how.editor_delay_ms,
        speed=how.speed,
        synthetic=is_synthetic,
        settings=how.settings,
    )
    if how.real_time:
        click.echo(replay_words.takes(_START_S + setup.seconds, len(how.systems)), err=True)
    engine = replay_runs.configured(how) if how.engine == "configured" else None
    with _progress() as told:
        observed = replay_runs.observe(trace, how, engine, told)
    return report.make(setup, observed, goals=goals)


@contextmanager
def _progress() -> Iterator[Told]:
    """A bar for somebody who sits before a terminal."""
    err = terminal.console(stderr=True)
    columns = (TextColumn("Typing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


# What is written


def _show(report: Report) -> None:
    from monkeycode_lsp.cli import replay_tables  # noqa: PLC0415 - as above

    replay_tables.show(report, terminal.console())


def _is_stdout(file: Path) -> bool:
    return str(file) == "-"


def _must_be_writable(file: Path) -> None:
    """Raises before the work is done and not after it."""
    if _is_stdout(file):
        return
    try:
        if file.exists():
            file.open("ab").close()
        else:
            with tempfile.TemporaryFile(dir=file.absolute().parent):
                pass
    except OSError as exc:
        raise MonkeyCodeError(f"Nothing can be written to {file}: {exc.strerror or exc}.") from exc


def _write(report: Report, json_file: Path | None, svg_file: Path | None) -> None:
    from monkeycode_lsp.bench.replay import report as reports  # noqa: PLC0415 - as above
    from monkeycode_lsp.bench.replay import svg  # noqa: PLC0415 - as above

    if json_file is not None:
        _put(reports.encode(report).decode(), json_file)
    if svg_file is not None:
        lines = [svg.Line(system.rates.system, system.waits_ms, system.rates.fresh_per_key or 0.0) for system in report.systems]
        _put(svg.draw("How soon text is there", replay_words.how(report.setup).replace("; ", "\n"), lines), svg_file)


def _put(text: str, file: Path) -> None:
    if _is_stdout(file):
        click.echo(text)
    else:
        file.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
