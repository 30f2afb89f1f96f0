"""The end of one statement: of its line, or of the line that closes its brackets."""

from __future__ import annotations

from monkeycode_lsp.domain import Window
from monkeycode_lsp.filters import brackets
from monkeycode_lsp.stops.amount import MOST_BLANK, Plan
from monkeycode_lsp.stops.values import Stop, lines


def end(text: str, window: Window, plan: Plan) -> Stop | None:
    """Where the statement ends; None: it goes on."""
    n = 0
    is_before_text = bool(window.line_after.strip())
    for line in lines(text):
        if line.is_blank and not n:
            if line.is_whole and (is_before_text or text.count("\n", 0, line.end) >= MOST_BLANK):
                return Stop(0, "an empty line")
            continue
        if not line.is_whole:
            return None
        n += 1
        if line.is_blank or n >= plan.max_lines or not brackets.is_open(text[: line.end], window.language):
            # A new line before existing text takes its line end along.
            is_own = is_before_text and not window.line_before.strip()
            return Stop(line.end + is_own, "the end of the line")
    return None
