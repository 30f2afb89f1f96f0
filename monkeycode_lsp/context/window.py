"""The text before and after the cursor that fits the budget (pure).

Looks only at the lines it takes, so its cost follows the budget and not the document.
The first line moves in coarse steps: while the user types, the prompt's beginning stays the same
and the engine's KV cache stays valid.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from monkeycode_lsp import config
from monkeycode_lsp.context import tokens
from monkeycode_lsp.domain import Selected, Snapshot, Window
from monkeycode_lsp.text import lf

STEP_LINES = 16


def around(snapshot: Snapshot, settings: config.Context, selected: Selected | None = None, *, scale: float = 1.0) -> Window:
    """The window at the cursor.

    `scale` < 1 shrinks both budgets (after an engine said that the prompt is too long).
    With `selected`, the window is that of the document as it would be with the pop-up's entry taken.
    """
    before, after = snapshot.line_before, snapshot.line_after
    if selected is not None and selected.line == snapshot.line:
        line = snapshot.lines[snapshot.line].rstrip("\r\n")
        before, after = line[: selected.start] + selected.text, line[max(selected.end, snapshot.column) :]
    prefix, whole_prefix = _before(snapshot, lf(before), settings.prefix_tokens * scale)
    suffix, whole_suffix = _after(snapshot, lf(after), settings.suffix_tokens * scale)
    return Window(
        prefix=prefix,
        suffix=suffix,
        language=snapshot.language,
        path=relative_path(snapshot.uri, snapshot.workspace),
        repository=repository(snapshot.workspace),
        whole_prefix=whole_prefix,
        whole_suffix=whole_suffix,
    )


def _before(snapshot: Snapshot, line: str, budget: float) -> tuple[str, bool]:
    head = tokens.fitting(line, budget, from_end=True)
    if len(head) < len(line):
        return head, False
    budget -= tokens.estimate(head)
    first = snapshot.line
    while first > 0:
        budget -= tokens.estimate(snapshot.lines[first - 1])
        if budget < 0:
            break
        first -= 1
    if first > 0:
        stepped = -(-first // STEP_LINES) * STEP_LINES
        first = stepped if stepped < snapshot.line else first
    text = lf("".join(snapshot.lines[first : snapshot.line])) + head
    if first > 0:
        return text, False
    cells, whole = _cells(reversed(snapshot.cells_before), budget)
    return "".join(cell + "\n" for cell in reversed(cells)) + text, whole


def _after(snapshot: Snapshot, line: str, budget: float) -> tuple[str, bool]:
    tail = tokens.fitting(line, budget, from_end=False)
    if len(tail) < len(line):
        return tail, False
    budget -= tokens.estimate(tail)
    lines = snapshot.lines
    stop = snapshot.line + 1
    while stop < len(lines):
        budget -= tokens.estimate(lines[stop])
        if budget < 0:
            break
        stop += 1
    text = lf("".join(lines[snapshot.line + 1 : stop]))
    if snapshot.line + 1 < len(lines):
        text = "\n" + text
    text = tail + text
    if stop < len(lines):
        return text, False
    cells, whole = _cells(snapshot.cells_after, budget)
    return text + "".join("\n" + cell for cell in cells), whole


def _cells(cells: Iterable[str], budget: float) -> tuple[list[str], bool]:
    taken: list[str] = []
    for cell in cells:
        budget -= tokens.estimate(cell)
        if budget < 0:
            return taken, False
        taken.append(lf(cell).removesuffix("\n"))
    return taken, True


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
