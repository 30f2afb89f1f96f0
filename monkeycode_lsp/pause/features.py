"""What a moment looks like to the model: a few named numbers, from the habit and the text before the cursor (pure)."""

from __future__ import annotations

import math

from monkeycode_lsp.domain import Window
from monkeycode_lsp.pause.habit import GROUPS, Habit

_LONG = 0.5
"""A gap is long from here on, as the logarithm of its ratio to the usual one."""
_CLOSERS = frozenset(")]}>\"'`;,")
_MOST_LINE = 400
"""Characters of the line that are looked at; a longer one is no line that anybody types."""
_MOST_TEXT = 2_000
"""Characters in which the word under the cursor is looked for."""
_MOST_FOUND = 6
"""Places of it that are looked at."""
_LEAST_WORD = 2


def features(habit: Habit, window: Window) -> dict[str, float]:
    """Name → value; what is not named is 0."""
    found = {
        f"last {habit.last}": 1.0,
        f"before {habit.before}": 1.0,
        f"run {_bucket(habit.run)}": 1.0,
    }
    _rhythm(habit, found)
    line = window.line_before[-_MOST_LINE:]
    _line(line, window.line_after[:_MOST_LINE], found)
    n_word = _word_length(line)
    if n_word:
        found[f"word {_bucket(n_word)}"] = 1.0
    if n_word >= _LEAST_WORD:
        _seen(window.prefix[-n_word:], window.prefix[-_MOST_TEXT:-n_word], found)
    if habit.deletions:
        found[f"deletions {_bucket(habit.deletions)}"] = 1.0
    elif habit.before == "deletion":
        found["corrected"] = 1.0
    return found


def _rhythm(habit: Habit, found: dict[str, float]) -> None:
    unit = habit.unit_ms
    for index, gap_ms in enumerate(habit.gaps_ms, 1):
        ratio = _log_ratio(gap_ms, unit)
        found[f"gap {index}"] = ratio
        if ratio > _LONG:
            found[f"long gap {index}"] = ratio - _LONG
    usual = habit.after(GROUPS[habit.last])
    found["usual gap"] = _log_ratio(usual.p50_ms, unit)
    found["usual pause"] = _log_ratio(usual.p90_ms, unit)


def _line(before: str, after: str, found: dict[str, float]) -> None:
    stripped = before.strip()
    if not stripped:
        found["blank"] = 1.0
    found["length"] = math.log1p(len(stripped)) / 4
    rest = after.strip()
    if not rest:
        found["line end"] = 1.0
    elif _CLOSERS.issuperset(rest):
        found["before closers"] = 1.0
    elif after[0].isalnum():
        found["inside word"] = 1.0
    depth = sum(map(before.count, "([{")) - sum(map(before.count, ")]}"))
    if depth:
        found["open" if depth > 0 else "closed"] = 1.0
    if before[-1:] == " ":
        if before[-2:-1] in tuple(",:;=."):
            found["space after sign"] = 1.0
    elif before[-2:-1] == before[-1:] != "":
        found["doubled"] = 1.0


def _seen(word: str, earlier: str, found: dict[str, float]) -> None:
    """Whether the word is whole, or the beginning of another, as far as the text above tells."""
    at = earlier.rfind(word)
    for _ in range(_MOST_FOUND):
        if at < 0:
            break
        if not at or not _in_word(earlier[at - 1]):
            end = at + len(word)
            found["begins a word" if _in_word(earlier[end : end + 1]) else "known word"] = 1.0
        at = earlier.rfind(word, 0, at + len(word) - 1)


def _in_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _word_length(line: str) -> int:
    for length, char in enumerate(reversed(line)):
        if not _in_word(char):
            return length
    return len(line)


def _bucket(count: int) -> int:
    """Small counts as they are, larger ones by the power of two below."""
    return count if count < 4 else 1 << min(count.bit_length() - 1, 4)  # noqa: PLR2004 - only small counts tell words apart


def _log_ratio(gap_ms: float, unit_ms: float) -> float:
    return min(max(math.log(max(gap_ms, 1.0) / unit_ms), -1.5), 2.5)
