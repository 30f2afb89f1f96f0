"""How much is wanted at a cursor."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from monkeycode_lsp.domain import Window

MOST_LINES = 12
MOST_STATEMENT_LINES = 6
"""A single statement may go on while a bracket is open."""
MOST_BLANK = 3
PATIENCE = 5

OPENS = re.compile(r"(?:[:{(\[]|=>|->|\bdo|\bthen|\bbegin|\belse)\s*\Z")
_BESIDE = frozenset(")]}>\"'`:;,{ \t")
"""What may stand after the cursor without being code: closers, most of them put there by the editor."""


class Plan(msgspec.Struct, frozen=True):
    """How much is wanted."""

    single: bool
    """One statement; else as much of the block as there is."""
    max_lines: int
    patience: int = PATIENCE
    """Lines that a model may go on beyond a likely end before it is taken for one that does not know how to end."""


def plan(window: Window, mode: Literal["auto", "always", "never"]) -> Plan:
    """One line where there is code after the cursor or a statement has begun; several in an empty place."""
    if mode == "never":
        return Plan(single=True, max_lines=1)
    if mode == "always":
        return Plan(single=False, max_lines=MOST_LINES)
    before, after = window.line_before.strip(), window.line_after.strip()
    if set(after) - _BESIDE:
        return Plan(single=True, max_lines=1)
    if after:
        # `{‸}` wants a body; `print(‸)` wants what goes between.
        is_body = before.endswith("{") and after.startswith("}")
        return Plan(single=not is_body, max_lines=MOST_LINES if is_body else 1)
    if not before or OPENS.search(before):
        return Plan(single=False, max_lines=MOST_LINES)
    return Plan(single=True, max_lines=MOST_STATEMENT_LINES)
