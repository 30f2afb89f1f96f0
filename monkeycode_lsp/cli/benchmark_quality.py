"""The report of `monkeycode benchmark --scenario quality` as tables, and the answers behind it."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from monkeycode_lsp.bench.quality.report import Example, Part, Report
from monkeycode_lsp.cli import benchmark_tables, terminal


def show(report: Report, out: Console, *, details: bool) -> None:
    """Each part with its ways, then the goals; `details`: then the tasks that are worth a look."""
    if report.model:
        out.print(report.model, markup=False)
    for part in report.parts:
        out.print(f"{part.name}: {f'left out. {part.left_out}' if part.left_out else part.about}", markup=False)
    for shown in (_ways(report.parts), benchmark_tables.table_of_figures(report.parts)):
        if shown.row_count:
            out.print()
            out.print(shown)
    for part in report.parts:
        _show_examples(part, out, details=details)
    benchmark_tables.verdicts(report.n_missed, out, n_open=report.n_open)


def _ways(parts: Iterable[Part]) -> Table:
    shown = terminal.table("part", "way", "n", "pass@1", "exact", "95 %", "similarity")
    for part in parts:
        for name, way in part.ways.items():
            between = f"{way.interval.low:.1%}-{way.interval.high:.1%}" if way.interval else ""
            passed = "" if way.passed is None else f"{way.passed:.1%}"
            shown.add_row(part.name, name, str(way.n), passed, f"{way.exact:.1%}", between, f"{way.similarity:.3f}")
    return shown


def _show_examples(part: Part, out: Console, *, details: bool) -> None:
    if not part.examples:
        return
    out.print()
    if not details:
        out.print(f"{part.name}, tasks worth a look: {len(part.examples)}. --details shows them.", markup=False)
    for example in part.examples if details else ():
        _show_example(example, out)


def _show_example(example: Example, out: Console) -> None:
    out.print(f"{example.id} - {example.what}", markup=False)
    for name, text in {"right": example.gold, **example.said}.items():
        out.print(f"  {name}:", markup=False)
        for line in text.split("\n"):
            out.print(f"    |{line}", markup=False)
