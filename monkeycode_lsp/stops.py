"""When an answer is complete: how much is asked for at this cursor, and where a stream can be cut (pure).

`find` sees the whole text so far on every chunk; it never cuts what could still become good.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from monkeycode_lsp.domain import Window
from monkeycode_lsp.filters import brackets, fences, following, markers, repetition
from monkeycode_lsp.filters.indentation import is_open, n_columns

MOST_LINES = 12
MOST_STATEMENT_LINES = 6
"""A single statement may go on while a bracket is open."""
_MOST_BLANK = 3

_OPENS = re.compile(r"(?:[:{(\[]|=>|->|\bdo|\bthen|\bbegin|\belse)\s*\Z")
_BESIDE = frozenset(")]}>\"'`:;,{ \t")
"""What may stand after the cursor without being code: closers, most of them put there by the editor."""
_CLOSES = re.compile(r"[\])}]|</|(?:end|fi|done|esac)\b")
_GOES_ON = re.compile(r"(?:else|elif|elsif|elseif|except|finally|catch|rescue|ensure|case|default|when)\b")


class Plan(msgspec.Struct, frozen=True):
    """How much is wanted."""

    single: bool
    """One statement; else as much of the block as there is."""
    max_lines: int


class Stop(msgspec.Struct, frozen=True):
    """Where a stream is cut, and why."""

    at: int
    """Keep `text[:at]`."""
    reason: str


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
    if not before or _OPENS.search(before):
        return Plan(single=False, max_lines=MOST_LINES)
    return Plan(single=True, max_lines=MOST_STATEMENT_LINES)


def find(text: str, window: Window, plan: Plan) -> Stop | None:
    """Where the answer so far is complete; None: let it go on."""
    n_thought = markers.n_thought(text)
    if n_thought:
        stop = find(text[n_thought:], window, plan)
        return Stop(stop.at + n_thought, stop.reason) if stop else None
    leak = markers.start(text, window)
    if fences.may_open(text, window):
        return None if leak is None else Stop(leak, "a control token")
    start, end = fences.body(text, window)
    body = text[start:]
    found = [
        Stop(at, reason)
        for at, reason in (
            (leak, "a control token"),
            (end, "the end of the code block"),
            (_moved(repetition.start(body), start), "a repetition"),
            (_moved(following.start(body, window, whole=False), start), "the lines that follow"),
            (_moved(brackets.extra_closer(body, window, whole=False), start), "a closing bracket that is already there"),
        )
        if at is not None
    ]
    ended = _statement(body, window, plan) if plan.single else _block(body, window, plan)
    if ended is not None:
        found.append(Stop(ended.at + start, ended.reason))
    return min(found, key=lambda stop: stop.at, default=None)


def _moved(at: int | None, start: int) -> int | None:
    return None if at is None else at + start


class _Line(msgspec.Struct, frozen=True):
    text: str
    start: int
    end: int
    is_whole: bool

    @property
    def is_blank(self) -> bool:
        return not self.text.strip()


def _lines(text: str) -> Iterator[_Line]:
    start = 0
    while True:
        end = text.find("\n", start)
        if end < 0:
            yield _Line(text[start:], start, len(text), is_whole=False)
            return
        yield _Line(text[start:end], start, end, is_whole=True)
        start = end + 1


def _statement(text: str, window: Window, plan: Plan) -> Stop | None:
    """One statement: to the end of the line, or of the line that closes its brackets."""
    n = 0
    is_before_text = bool(window.line_after.strip())
    for line in _lines(text):
        if line.is_blank and not n:
            if line.is_whole and (is_before_text or text.count("\n", 0, line.end) >= _MOST_BLANK):
                return Stop(0, "an empty line")
            continue
        if not line.is_whole:
            return None
        n += 1
        if line.is_blank or n >= plan.max_lines or not is_open(text[: line.end], window.language):
            # A new line before existing text takes its line end along.
            is_own = is_before_text and not window.line_before.strip()
            return Stop(line.end + is_own, "the end of the line")
    return None


def _block(text: str, window: Window, plan: Plan) -> Stop | None:
    """A block: to its dedent, to a blank line that leaves it, or to the longest that is shown."""
    has_opened = bool(window.line_before.strip())
    least = n_columns(window.line_before) + 1 if has_opened else None
    below = following.ahead(window)
    floor = _floor(window, below)
    n = n_blank = kept = 0
    for line in _lines(text):
        if line.is_blank:
            if not n and line.is_whole and text.count("\n", 0, line.end) >= _MOST_BLANK:
                return Stop(0, "an empty line")
            n_blank += n > 0 and line.is_whole
            if n_blank > 1 or (n_blank and least == 0):
                return Stop(kept, "a blank line")
            continue
        is_first = line.start == 0
        columns = n_columns(window.line_before + line.text if is_first else line.text)
        if least is None:
            least = columns
        elif not is_first and not is_open(text[: line.start], window.language):
            stop = _left(line, columns, least=least, floor=floor, is_apart=n_blank > 0, has_opened=has_opened, kept=kept)
            if stop is not None:
                return stop
        if not line.is_whole:
            return None
        n += 1
        n_blank = 0
        kept = line.end
        if n >= plan.max_lines:
            return Stop(kept, "the longest that is shown")
    return None


def _floor(window: Window, below: list[str]) -> int:
    """The least column of a line that can stand before the text that follows."""
    if not below or (n_columns(below[0]) == 0 and not window.suffix.startswith("\n" + below[0])):
        return 1  # What follows, if anything, stands apart: column 0 begins something new.
    return n_columns(below[0])


def _left(line: _Line, columns: int, *, least: int, floor: int, is_apart: bool, has_opened: bool, kept: int) -> Stop | None:
    """Whether `line` has left the block."""
    if columns >= least:
        return None
    said = line.text.lstrip()
    if _CLOSES.match(said):
        ends_here = has_opened and line.is_whole and not _OPENS.search(said)
        return Stop(line.end, "the end of the block") if ends_here else None
    if _GOES_ON.match(said) and not is_apart:
        return None
    if has_opened or is_apart:
        may_go_on = not line.is_whole and _is_beginning(said)
        return None if may_go_on else Stop(kept, "the end of the block")
    # Shallower than the text that follows: good only where it opens a block again.
    if columns < floor and (not line.is_whole or _OPENS.search(said)):
        return None
    return Stop(kept, "the end of the block") if columns < floor else None


def _is_beginning(said: str) -> bool:
    """Whether a word that goes on with the block may still come out of it."""
    return any(
        word.startswith(said) for word in ("else", "elif", "elsif", "elseif", "except", "finally", "catch", "rescue", "ensure", "end")
    )
