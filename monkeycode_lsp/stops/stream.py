"""Where the answer so far is complete.  Sees the whole text on every chunk; never cuts what could still become good."""

from __future__ import annotations

from monkeycode_lsp.domain import Window
from monkeycode_lsp.filters import brackets, fences, following, markers, repetition
from monkeycode_lsp.stops import block, statement
from monkeycode_lsp.stops.amount import Plan
from monkeycode_lsp.stops.values import Stop, lines

_FENCE, _REPETITION = "the end of the code block", "a repetition"
_LOST = frozenset({_FENCE, _REPETITION})
_LINES_AFTER_ONE = 3
"""One line that also stands below may be a sister; with so many more behind it that do not, the model has lost the thread."""


def find(text: str, window: Window, plan: Plan) -> Stop | None:
    """Where the answer so far is complete; None: let it go on."""
    return _find(text, window, plan, is_broken_off=False)


def broken_off(text: str, window: Window, plan: Plan) -> Stop | None:
    """The same for an answer that comes no further (too long, too late): what is likely its end is its end."""
    return _find(text, window, plan, is_broken_off=True)


def _find(text: str, window: Window, plan: Plan, *, is_broken_off: bool) -> Stop | None:
    n_thought = markers.n_thought(text)
    if n_thought:
        stop = _find(text[n_thought:], window, plan, is_broken_off=is_broken_off)
        return Stop(stop.at + n_thought, stop.reason, stop.ran_on) if stop else None
    leak = markers.start(text, window)
    if fences.may_open(text, window):
        return None if leak is None else Stop(leak, "a control token")
    start, end = fences.body(text, window)
    body = text[start:]
    found = [
        Stop(at, reason)
        for at, reason in (
            (leak, "a control token"),
            (end, _FENCE),
            (_moved(repetition.start(body, window), start), _REPETITION),
            (_moved(_following(body, window, is_broken_off=is_broken_off), start), "the lines that follow"),
            (_moved(brackets.extra_closer(body, window, whole=False), start), "a closing bracket that is already there"),
        )
        if at is not None
    ]
    is_block = not plan.single or (plan.asks and body.startswith("\n"))
    ended = block.end(body, window, plan, is_broken_off=is_broken_off) if is_block else statement.end(body, window, plan)
    if ended is not None:
        found.append(Stop(ended.at + start, ended.reason, ended.ran_on))
    first = min(found, key=lambda stop: stop.at, default=None)
    if first is None or not is_block or first.reason not in _LOST or (start and first.at == end):
        return first
    # Who loses the thread did so where the block likely ended.
    likely = block.end(text[start : first.at], window, plan, is_broken_off=True)
    return Stop(likely.at + start, likely.reason, ran_on=True) if likely else first


def _moved(at: int | None, start: int) -> int | None:
    return None if at is None else at + start


def _following(text: str, window: Window, *, is_broken_off: bool) -> int | None:
    at = following.start(text, window, whole=False)
    if at is not None:
        return at
    one = following.start(text, window, whole=False, n_sure=1)
    if one is None:
        return None
    n_more = sum(line.is_whole and not line.is_blank for line in lines(text[one:].removeprefix("\n"))) - 1
    return one if is_broken_off or n_more >= _LINES_AFTER_ONE else None
