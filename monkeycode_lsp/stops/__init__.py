"""When an answer is complete: how much is asked for at this cursor, and where a stream can be cut (pure).

A cut is for cause.  What is certain (control tokens, repetition, the lines that follow) cuts at once;
what is only likely the end of a block is remembered while the model goes on for a few lines:
one that has really finished says so by itself, and keeps what it said.
"""

from __future__ import annotations

from monkeycode_lsp.stops.amount import MOST_LINES, MOST_STATEMENT_LINES, Plan, plan
from monkeycode_lsp.stops.habit import Habit
from monkeycode_lsp.stops.stream import broken_off, find
from monkeycode_lsp.stops.values import Stop

__all__ = ["MOST_LINES", "MOST_STATEMENT_LINES", "Habit", "Plan", "Stop", "broken_off", "find", "plan"]
