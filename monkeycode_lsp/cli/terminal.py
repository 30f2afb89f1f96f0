"""What commands print, with colours and bars on a terminal and as plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import msgspec
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

OPEN, CLOSE = ">>", "<<"
"""Around a suggestion where there are no colours."""
GHOST = "not bold italic bright_black"
_PLAIN_WIDTH = 2000
_STEP_PERCENT = 10
_TAB = 4


def console(*, stderr: bool = False) -> Console:
    """Where a command prints.  Elsewhere than on a terminal lines are not broken and hold no control characters."""
    made = Console(stderr=stderr, highlight=False, soft_wrap=False)
    return made if made.is_terminal else Console(stderr=stderr, highlight=False, no_color=True, width=_PLAIN_WIDTH)


def size(n_bytes: int) -> str:
    """For people: `491 MB`."""
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.0f} MB"  # noqa: PLR2004 - a gigabyte


def table(*columns: str) -> Table:
    """An empty table with these columns."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


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


class Bytes(msgspec.Struct):
    """How far one stage of a download is; for a place without a terminal."""

    stage: str = ""
    percent: int = -1
    started: float = 0.0
    first: int = 0


class PlainProgress:
    """A line for each stage and each tenth of it."""

    def __init__(self, out: Console) -> None:
        self._out = out
        self._at = Bytes()

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        if stage != self._at.stage:
            self._at = Bytes(stage=stage, started=time.monotonic(), first=done)
            self._out.print(f"{stage} …" if total is None else f"{stage}: {size(total)}", markup=False)
        if not total:
            return
        percent = int(100 * done / total) // _STEP_PERCENT * _STEP_PERCENT
        if percent > max(0, self._at.percent):
            self._at.percent = percent
            seconds = time.monotonic() - self._at.started
            speed = (done - self._at.first) / seconds if seconds > 0 else 0.0
            left = f", {(total - done) / speed:.0f} s left" if speed and done < total else ""
            self._out.print(f"  {percent} % of {size(total)}, {speed / 1e6:.1f} MB/s{left}", markup=False)


class BarProgress:
    """A bar with size, speed and time left for each stage."""

    def __init__(self, out: Console) -> None:
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
        if self._task is None or stage != self._stage:
            self._stage = stage
            self._task = self._progress.add_task(stage, total=total)
        self._progress.update(self._task, completed=done, total=total)


@contextmanager
def progress(out: Console) -> Iterator[PlainProgress | BarProgress]:
    """Hears `(stage, bytes done, bytes in all)` and shows it."""
    if not out.is_terminal:
        yield PlainProgress(out)
        return
    with BarProgress(out) as bar:
        yield bar
