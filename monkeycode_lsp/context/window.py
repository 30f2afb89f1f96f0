"""The text before and after the cursor that fits the budget (pure).

Looks only at the lines it takes, so its cost follows the budget and not the document.  What one side does not need, the other
gets.  The beginning moves in coarse steps: while the user types, the prompt's beginning stays the same and the engine's KV cache
stays valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from monkeycode_lsp import config
from monkeycode_lsp.context import cutting, tokens
from monkeycode_lsp.context.tokens import Counter
from monkeycode_lsp.domain import Selected, Snapshot, Window
from monkeycode_lsp.text import lf

SLACK = 0.25
"""Most of the budget before the cursor that is given up so that the beginning stays where it is."""
_SPARE_STEPS = 8
"""What one side leaves is passed on in so many steps of its budget, or each key would move the other side's border."""
_TOKEN_CHARACTERS = 16
"""A line of more in every token of the budget does not fit, whatever it holds; so an endless one is not even looked at."""


def around(
    snapshot: Snapshot,
    settings: config.Context,
    selected: Selected | None = None,
    *,
    scale: float = 1.0,
    counter: Counter | None = None,
) -> Window:
    """The window at the cursor.

    `scale` < 1 shrinks both budgets (a slow engine, or one that said that the prompt is too long); `counter` knows the model's
    tokens.  With `selected`, the window is that of the document as it would be with the pop-up's entry taken.
    """
    if counter is None:
        counter = tokens.Estimate(tokens.rates(snapshot.language))
    before_budget, after_budget = settings.prefix_tokens * scale, settings.suffix_tokens * scale
    line_before, line_after = _line(snapshot, selected, int((before_budget + after_budget) * _TOKEN_CHARACTERS))
    after = _After(snapshot, line_after, counter, before_budget + after_budget)
    before = _Before(snapshot, line_before, counter, before_budget + _spare(after_budget, after.n_tokens))
    more = _spare(before_budget, before.n_tokens) if after_budget else 0.0  # who wants nothing from there gets nothing
    suffix, whole_suffix = after.within(after_budget + more)
    return Window(
        prefix=before.text,
        suffix=suffix,
        language=snapshot.language,
        path=relative_path(snapshot.uri, snapshot.workspace),
        repository=repository(snapshot.workspace),
        whole_prefix=before.whole,
        whole_suffix=whole_suffix,
    )


class _Line:
    """The cursor's line on one side of it: at most `most` characters of it, and how many there are."""

    def __init__(self, line: str, start: int, end: int, most: int, *, before: bool) -> None:
        self.length = end - start
        self.text = line[max(start, end - most) : end] if before else line[start : min(end, start + most)]


def _line(snapshot: Snapshot, selected: Selected | None, most: int) -> tuple[_Line, _Line]:
    line = snapshot.lines[snapshot.line]
    end = len(line) - len(line[-2:]) + len(line[-2:].rstrip("\r\n"))
    column, rest = snapshot.column, snapshot.column
    if selected is not None and selected.line == snapshot.line:
        rest = max(selected.end, snapshot.column)
        before = line[: selected.start] + selected.text
        return _Line(before, 0, len(before), most, before=True), _Line(line, min(rest, end), end, most, before=False)
    return _Line(line, 0, min(column, end), most, before=True), _Line(line, min(rest, end), end, most, before=False)


def _spare(budget: float, used: float) -> float:
    """What a side with this budget leaves to the other."""
    return int(max(0.0, budget - used) / budget * _SPARE_STEPS) * budget / _SPARE_STEPS if budget else 0.0


class _Before:
    """What is taken before the cursor."""

    def __init__(self, snapshot: Snapshot, line: _Line, counter: Counter, budget: float) -> None:
        self.n_tokens = budget
        self.whole = False
        n_line = counter.part(line.text)
        if len(line.text) < line.length or n_line > budget:
            self.text = cutting.tail(line.text, line.length, counter.part, budget, slack=SLACK)
            return
        costs = _costs(snapshot.lines, range(snapshot.line - 1, -1, -1), counter, budget - n_line)
        first, left = snapshot.line - len(costs), budget - n_line - sum(costs)
        if first > 0:
            # Where one endless line leaves next to nothing, a part of it is better than that.
            above = _end(snapshot.lines[first - 1], counter, left) if left > budget * (1 - SLACK) else ""
            first = first if above else _steady(costs, first, budget * SLACK)
            self.text = above + lf("".join(snapshot.lines[first : snapshot.line])) + lf(line.text)
            return
        cells, left, self.whole = _cells(snapshot.cells_before[::-1], counter, left, above=True)
        self.n_tokens = budget - left
        lines = lf("".join(snapshot.lines[: snapshot.line])) + lf(line.text)
        self.text = "".join(cell + "\n" for cell in reversed(cells)) + lines


class _After:
    """What could be taken after the cursor, if the other side left it all of its budget."""

    def __init__(self, snapshot: Snapshot, line: _Line, counter: Counter, most: float) -> None:
        self._snapshot, self._line, self._counter = snapshot, line, counter
        self._n_line = counter.part(line.text)
        self._costs: list[float] = []
        self._cells: tuple[list[str], float, bool] = ([], 0.0, False)
        self.n_tokens = most
        if len(line.text) < line.length or self._n_line > most:
            return
        rest = range(snapshot.line + 1, len(snapshot.lines))
        self._costs = _costs(snapshot.lines, rest, counter, most - self._n_line)
        if len(self._costs) == len(rest):
            self.n_tokens = min(most, self._n_line + sum(self._costs) + sum(map(counter.part, snapshot.cells_after)))

    def within(self, budget: float) -> tuple[str, bool]:
        """As much as fits, and whether that is all there is."""
        if len(self._line.text) < self._line.length or self._n_line > budget:
            return cutting.head(self._line.text, self._line.length, self._counter.part, budget), False
        lines, first = self._snapshot.lines, self._snapshot.line + 1
        left, stop = budget - self._n_line, first
        for cost in self._costs:
            if cost > left:
                break
            left -= cost
            stop += 1
        text = lf(self._line.text) + ("\n" if first < len(lines) else "") + lf("".join(lines[first:stop]))
        if stop < len(lines):
            return text, False
        cells, _, whole = _cells(self._snapshot.cells_after, self._counter, left, above=False)
        return text + "".join("\n" + cell for cell in cells), whole


def _end(line: str, counter: Counter, budget: float) -> str:
    raw = line[-int(budget * _TOKEN_CHARACTERS) - 2 :]
    text = lf(raw)
    return cutting.tail(text, len(line) - len(raw) + len(text), counter.part, budget, slack=SLACK)


def _costs(lines: Sequence[str], numbers: Sequence[int], counter: Counter, budget: float) -> list[float]:
    """Of the lines of these numbers, in their order, as far as they fit."""
    costs: list[float] = []
    for number in numbers:
        line = lines[number]
        if len(line) > budget * _TOKEN_CHARACTERS + 2:
            break
        cost = counter.line(lf(line))
        budget -= cost
        if budget < 0:
            break
        costs.append(cost)
    return costs


def _steady(costs: Sequence[float], first: int, slack: float) -> int:
    """A line at or below `first` at which the window can begin for long; `costs` are those of the lines from the cursor up.

    The roundest number is taken for which no more than `slack` tokens are given up: it stays the roundest until it falls out
    of the window.
    """
    last, stop = first, first + len(costs)
    for cost in reversed(costs):
        slack -= cost
        if slack < 0 or last + 1 > stop:
            break
        last += 1
    return cutting.roundest(first, last)


def _cells(cells: Sequence[str], counter: Counter, budget: float, *, above: bool) -> tuple[list[str], float, bool]:
    """Of a notebook's other cells, the nearest first, what fits; the budget that is left, and whether that is all of them."""
    taken: list[str] = []
    for cell in cells:
        most = int(budget * _TOKEN_CHARACTERS) + 1
        near = cell[-most:] if above else cell[:most]
        lines = lf(near).removesuffix("\n").split("\n")
        costs = _costs([line + "\n" for line in lines], range(len(lines))[:: -1 if above else 1], counter, budget)
        budget -= sum(costs)
        if len(costs) < len(lines) or len(near) < len(cell):
            part = lines[len(lines) - len(costs) :] if above else lines[: len(costs)]
            return [*taken, *(["\n".join(part)] if part else [])], budget, False
        taken.append("\n".join(lines))
    return taken, budget, True


def relative_path(uri: str, workspace: str) -> str:
    """The document's path below its workspace, or its bare name; never a path of this machine."""
    path = PurePosixPath(unquote(urlsplit(uri).path))
    if workspace:
        root = PurePosixPath(unquote(urlsplit(workspace).path))
        if path.is_relative_to(root):
            return str(path.relative_to(root))
    return path.name


def repository(workspace: str) -> str:
    """The workspace folder's name."""
    return PurePosixPath(unquote(urlsplit(workspace).path)).name if workspace else ""
