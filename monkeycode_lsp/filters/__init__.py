"""Answer → suggestion: an ordered row of small pure filters, each text → text.

A filter takes away what does not belong; none invents anything.  An answer of which nothing is
left is not shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from monkeycode_lsp.context.surroundings import Surroundings
from monkeycode_lsp.domain import Window
from monkeycode_lsp.filters import (
    bodies,
    brackets,
    characters,
    echo,
    fences,
    following,
    indentation,
    lines,
    markers,
    overlap,
    repetition,
    syntax,
    whitespace,
)

Filter = Callable[[str, Window], str]

FILTERS: tuple[Filter, ...] = (
    characters.with_lf_only,
    characters.without_controls,
    characters.without_broken_end,
    markers.without_thoughts,
    markers.without_markers,
    fences.without_fence,
    echo.without_line,
    echo.without_line_above,
    echo.without_doubled_word,
    bodies.unless_body_is_missing,
    repetition.without_repeats,
    whitespace.without_doubled_blank,
    overlap.without_rest_of_line,
    overlap.unless_ended_twice,
    following.without_following_lines,
    following.without_closing_line,
    following.unless_said_below,
    bodies.without_lost_lines,
    brackets.without_extra_closers,
    indentation.without_given_lead,
    indentation.in_own_kind,
    indentation.as_deep_as_what_follows,
    whitespace.without_end,
)
"""In order: what is no text, what is no code, what is there already, what is out of shape."""

TASTE = frozenset({bodies.unless_body_is_missing, following.unless_said_below, overlap.unless_ended_twice})
"""Off when the user asks by key."""


class Extent(Protocol):
    """The part of a plan that filters need."""

    @property
    def max_lines(self) -> int: ...


class Cleaned(msgspec.Struct, frozen=True):
    """What is left of an answer, and which filter left nothing."""

    text: str
    emptied_by: str = ""
    """Name of the filter, in words: `without rest of line`."""


def prepare(window: Window, around: Surroundings) -> None:
    """Look at what stands around an answer while it is waited for."""
    brackets.n_faults("", window)
    syntax.prepare(window, around)


def clean(text: str, window: Window, *, plan: Extent, around: Surroundings = Surroundings(), explicit: bool = False) -> str:  # noqa: B008 - frozen
    """The text to insert at the cursor, LF only; empty: nothing is worth showing.

    `around`: what of the document stands outside the window, so that its text is parsed as what it is.
    """
    return explained(text, window, plan=plan, around=around, explicit=explicit).text


def explained(
    text: str,
    window: Window,
    *,
    plan: Extent,
    around: Surroundings = Surroundings(),  # noqa: B008 - frozen
    explicit: bool = False,
    is_growing: bool = False,
) -> Cleaned:
    """Like `clean`, and tells which filter took the last of it.  `is_growing`: the last line is not whole, and not judged as if it were."""
    if not text.strip():
        return Cleaned("")
    for apply in FILTERS:
        if explicit and apply in TASTE:
            continue
        text = apply(text, window)
        if not text.strip():
            return Cleaned("", emptied_by=apply.__name__.replace("_", " "))
    if not window.line_after.strip():
        text = lines.limit(text, plan.max_lines).rstrip("\n")
    if not is_growing:
        text = syntax.without_faults(text, window, around)
    text = whitespace.without_end(text, window)
    return Cleaned(text) if text.strip() else Cleaned("", emptied_by="without parse errors")
