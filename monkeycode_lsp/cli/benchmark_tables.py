"""The reports of `monkeycode benchmark` as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from monkeycode_lsp.bench import context, engine_report, load_report, overhead
from monkeycode_lsp.bench.engine_report import Asks, Figure, Part
from monkeycode_lsp.bench.figures import Spread
from monkeycode_lsp.bench.quality import quant
from monkeycode_lsp.bench.quality import report as quality_report
from monkeycode_lsp.cli import terminal

_SMALL = 10.0
_TINY = 0.1
_MOST = 0.5
_SIGNS = {"most": "≤", "least": "≥", "more": ">", "": ""}
_TOO_SLOW = "Most asks got no text, so there is little to judge. `monkeycode doctor` says how fast the endpoint is, and what would mend it."
_SOONER = (
    "added, below 0: our way was done sooner. It ends a stream when it has enough and replies by completion.deadlineMs with what there is; "
    "or the machine was busier while the straight way was measured."
)


def show_overhead(report: overhead.Report, out: Console) -> None:
    """What the server itself costs."""
    shown = terminal.table("figure", "n", "p50", "p90", "p99")
    for name in report.__struct_fields__:
        value = getattr(report, name)
        if name == "ratios":
            continue
        for label, figure in value.items() if isinstance(value, dict) else [("", value)]:
            title = f"{name} {label}".strip().replace("_", " ")
            if isinstance(figure, Spread):
                shown.add_row(title, str(figure.n), *(f"{ms:.2f}" for ms in (figure.p50, figure.p90, figure.p99)))
            else:
                shown.add_row(title, "", f"{figure:.2f}")
    out.print(shown)
    out.print()
    goals = terminal.table("ours", "measured", "goal", "")
    for ratio in report.ratios:
        goals.add_row(*_measured(ratio))
    out.print(goals)
    out.print()
    out.print(
        "floor: a bare pygls server with the same HTTP client. Repeated and typed-through asks are answered without the endpoint.",
        markup=False,
    )


def show_load(report: load_report.Report, out: Console) -> None:
    """Each part with its ways, then the goals."""
    busy = "" if report.busy_cores is None else f"; of {report.cores} processors {report.busy_cores:.1f} were busy before the run"
    out.print(f"Endpoint: {report.endpoint}. {report.servers} servers{busy}", markup=False)
    times = terminal.table("part", "way", "n", "ms p50", "p90", "p99")
    for part in report.parts:
        out.print(f"{part.name}: {f'left out. {part.left_out}' if part.left_out else part.about}", markup=False)
        for way, spread in part.systems.items():
            times.add_row(part.name, way, str(spread.n), *(_number(ms) for ms in (spread.p50, spread.p90, spread.p99)))
    for shown in (times, table_of_figures(report.parts)):
        if shown.row_count:
            out.print()
            out.print(shown)
    figures = [figure for part in report.parts for figure in part.figures]
    if any(figure.name.startswith("added") and figure.value < 0 for figure in figures):
        out.print()
        out.print(_SOONER, markup=False)
    if any(figure.name.startswith("asks without text") and figure.value > _MOST for figure in figures):
        out.print()
        out.print(_TOO_SLOW, markup=False)
    else:
        verdicts(report.n_missed, out)


def show_engine(report: engine_report.Report, out: Console) -> None:
    """Each part with its systems, then the goals."""
    for line in _heading(report):
        out.print(line, markup=False)
    for shown in (_asks(report), table_of_figures(report.parts)):
        if shown.row_count:
            out.print()
            out.print(shown)
    for part in report.parts:
        if part.left_out:
            out.print(f"{part.name}: left out. {part.left_out}", markup=False)
    verdicts(report.n_missed, out)


def show_context(report: context.Report, out: Console) -> None:
    """What was done, then the figures."""
    for part in report.parts:
        out.print(part.about, markup=False)
    out.print()
    out.print(table_of_figures(report.parts))
    verdicts(report.n_missed, out)


def verdicts(n_missed: int, out: Console, *, n_open: int = 0) -> None:
    """The last line of a report.  `n_open`: goals that were not judged."""
    out.print()
    missed = "1 goal is missed." if n_missed == 1 else f"{n_missed} goals are missed."
    met = "No goal is missed." if n_open else "All goals are met."
    left = f" {n_open} {'is' if n_open == 1 else 'are'} not judged: too few tasks." if n_open else ""
    out.print(f"{missed if n_missed else met}{left}", markup=False)


def _heading(report: engine_report.Report) -> Iterator[str]:
    busy = "" if report.busy_cores is None else f", {report.busy_cores:.1f} busy before the run"
    yield f"{report.model} on {report.machine}: {report.threads} threads{busy}"
    yield (
        f"{report.slots} slots of {report.context_tokens} tokens, chunks of {report.batch_tokens}, drafts {report.drafts}"
        + (", quick: too few rounds for figures to quote" if report.quick else "")
    )
    for name, version in report.systems.items():
        yield f"{name}: {version}"
    for part in report.parts:
        if part.about:
            yield f"{part.name}: {part.about}"


def _asks(report: engine_report.Report) -> Table:
    shown = terminal.table("part", "system", "n", "first ms p50", "p90", "p99", "whole ms p50", "p90", "p99", "tokens/s", "reused")
    for part in report.parts:
        for name, asks in part.systems.items():
            shown.add_row(*_row(part, name, asks))
    return shown


def _row(part: Part, name: str, asks: Asks) -> Iterator[str]:
    yield from (part.name, name, str(asks.first_ms.n))
    for spread in (asks.first_ms, asks.total_ms):
        yield from (_number(ms) for ms in (spread.p50, spread.p90, spread.p99))
    yield "" if asks.tokens_per_second is None else _number(asks.tokens_per_second)
    yield f"{asks.reuse_share:.1%}"


def table_of_figures(parts: Iterable[Part | load_report.Part | quality_report.Part]) -> Table:
    """Those of all parts, with their goals."""
    shown = terminal.table("part", "figure", "measured", "goal", "")
    for part in parts:
        for figure in part.figures:
            shown.add_row(part.name, *_measured(figure))
    return shown


def _measured(figure: Figure) -> Iterator[str | Text]:
    yield from (figure.name, _value(figure.value, figure.unit), _goal(figure), _verdict(figure))


def _goal(figure: Figure) -> str:
    if figure.goal is None:
        return ""
    return f"{_SIGNS[figure.bound]} {_value(figure.goal, figure.unit)}"


def _verdict(figure: Figure) -> Text:
    if figure.ok is None:
        return terminal.plain("" if figure.goal is None else "too few tasks to judge")
    return terminal.plain("ok", style="green") if figure.ok else terminal.plain("missed", style="bold red")


def _value(value: float, unit: str) -> str:
    return f"{value:.1%}" if unit == "share" else f"{_number(value)} {unit}".strip()


def _number(value: float) -> str:
    """With as many digits as mean something."""
    if value == int(value):
        return str(int(value))
    return (
        f"{value:.0f}"
        if abs(value) >= _SMALL * _SMALL
        else f"{value:.1f}"
        if abs(value) >= _SMALL
        else f"{value:.{2 if abs(value) >= _TINY else 3}f}"
    )


def show_quant(report: quant.Report, out: Console) -> None:
    """One line for each file."""
    shown = terminal.table("file", "size", "memory", "first token", "read/s", "write/s", "asks/s", "exact", "similar", whole="file")
    for file in report.files:
        shown.add_row(
            Path(file.path).name,
            terminal.size(file.size_bytes),
            f"{file.memory_mb:.0f} MB" if file.memory_mb else "",
            f"{file.first_ms:.0f} ms",
            *(_number(speed) for speed in (file.read_tokens_per_second, file.write_tokens_per_second, file.asks_per_second)),
            f"{file.exact:.0%}",
            f"{file.similarity:.3f}",
        )
    out.print(shown)
    for file in report.files:
        if not file.fills:
            out.print(f"{Path(file.path).name} has no fill-in-the-middle tokens: it saw only what stands before the holes.", markup=False)
    n = report.files[0].n
    out.print(
        f"first token: of a new prompt of about {report.files[0].prompt_tokens} tokens. exact, similar: of {n} holes in the standard library "
        "of this Python, which every model has read; they compare files with each other.",
        markup=False,
    )
