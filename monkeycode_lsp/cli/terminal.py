"""What commands print, with colours and bars on a terminal and as plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

OPEN, CLOSE = ">>", "<<"
"""Around a suggestion where there are no colours."""
GHOST = "not bold italic bright_black"
_PLAIN_WIDTH = 2000
STEP_PERCENT = 25
_WHOLE = 100
_NARROW = 110
"""Columns of a terminal that a table with sentences does not fit into."""
_TAB = 4


def console(*, stderr: bool = False) -> Console:
    """Where a command prints.  Elsewhere than on a terminal lines are not broken and hold no control characters."""
    made = Console(stderr=stderr, highlight=False, soft_wrap=False)
    return made if made.is_terminal else Console(stderr=stderr, highlight=False, no_color=True, width=_PLAIN_WIDTH)


def size(n_bytes: int) -> str:
    """For people: `491 MB`."""
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.0f} MB"  # noqa: PLR2004 - a gigabyte


def table(*columns: str, whole: str = "") -> Table:
    """An empty table with these columns; on a narrow terminal the column `whole` is never broken."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, overflow="fold", no_wrap=bool(whole) and column == whole)
    return made


def is_narrow(out: Console) -> bool:
    """Whether sentences get lines of their own, because in a column they would be broken inside words."""
    return out.width < _NARROW


def print_indented(out: Console, text: str, n: int) -> None:
    """Words that are broken between words only, all lines `n` columns from the left and none padded."""
    for line in Text(text).wrap(out, out.width - n):
        out.print(Text.assemble(" " * n, line))


def plain(text: str, *, style: str = "") -> Text:
    """Words for a table's cell, taken literally."""
    return Text(text, style=style)


def ghost(before: str, suggestion: str, after: str, language: str, *, colours: bool) -> Text:
    """Code with a suggestion in it, as an editor would show it."""
    if not colours:
        return Text(before + (f"{OPEN}{suggestion}{CLOSE}" if suggestion else "") + after.rstrip("\n"), tab_size=_TAB)
    code, begin, end = (text.expandtabs(_TAB) for text in (before + suggestion + after, before, before + suggestion))
    shown = Syntax("", language, theme="ansi_dark", background_color="default").highlight(code)
    shown.rstrip()
    shown.stylize(GHOST, len(begin), len(end))
    return shown


class PlainProgress:
    """A line when a stage begins and few while it goes on; for a place without a terminal.

    The mutable state is the stage, what of it was said, and when it began and where.
    """

    def __init__(self, out: Console, *, step_percent: int = STEP_PERCENT) -> None:
        """`step_percent`: a line for each such part of a stage; 100 for none but its first."""
        self._out = out
        self._step = step_percent
        self._stage = ""
        self._percent = 0
        self._started = 0.0
        self._first = 0

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        if stage != self._stage:
            self._stage, self._percent, self._started, self._first = stage, 0, time.monotonic(), done
            self._out.print(_heading(stage, done, total), markup=False)
        percent = int(100 * done / total) // self._step * self._step if total else 0
        if total and self._percent < percent < _WHOLE:
            self._percent = percent
            seconds = time.monotonic() - self._started
            speed = (done - self._first) / seconds if seconds > 0 else 0.0
            left = f", {(total - done) / speed:.0f} s left" if speed else ""
            self._out.print(f"  {percent} % of {size(total)}, {speed / 1e6:.1f} MB/s{left}", markup=False)


class BarProgress:
    """One bar with size, speed and time left, whatever is being done; sentences stand above it."""

    def __init__(self, out: Console) -> None:
        self._out = out
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=out,
        )
        self._task: TaskID | None = None
        self._stage = ""

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._progress.stop()

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        is_new, self._stage = stage != self._stage, stage
        if total is None and not done:
            if is_new:
                self._out.print(_heading(stage, done, total), markup=False)
        elif self._task is None:
            self._task = self._progress.add_task(stage, total=total, completed=done)
        elif is_new:  # what was done before says nothing about the speed of this
            self._progress.reset(self._task, description=stage, total=total, completed=done)
        else:
            self._progress.update(self._task, completed=done, total=total)


def _heading(stage: str, done: int, total: int | None) -> str:
    if total is not None:
        return f"{stage}: {size(total)}"
    return stage if stage.endswith(".") and not done else f"{stage} …"


@contextmanager
def progress(out: Console, *, step_percent: int = STEP_PERCENT) -> Iterator[PlainProgress | BarProgress]:
    """Hears `(stage, bytes done, bytes in all)` and shows it.  `step_percent` is for places without a terminal."""
    if not out.is_terminal:
        yield PlainProgress(out, step_percent=step_percent)
        return
    with BarProgress(out) as bar:
        yield bar
