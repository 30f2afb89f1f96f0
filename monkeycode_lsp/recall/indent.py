"""A suggestion, brought to a place that is indented differently (pure).

Its first line continues the cursor's line; the others begin with white space that is counted in levels
from there.  Where that does not come out even, or tabs and blanks are mixed, there is no answer: an odd
indentation is worse than no suggestion.
"""

from __future__ import annotations

import itertools

_WHITE = " \t"
_WIDTHS = frozenset({2, 3, 4, 8})
"""Blanks that people write for one level."""


def reindented(text: str, made: str, now: str) -> str | None:
    """`text`, made where the cursor's line begins with `made`, for one that begins with `now`; None where that cannot be done cleanly."""
    first, *below = text.split("\n")
    leads = {_lead(line) for line in below if line.strip()}
    if made == now or not leads:
        return text
    level = _level(made, now, leads)
    if level is None:
        return None
    written, wanted = level
    inner = _lead(first) if first.strip() else ""
    if inner not in {"", " "} and (written != len(wanted) or set(inner) != set(wanted or inner)):
        # It may be indentation or only a gap: left alone where both places write it alike.
        return None
    moved: dict[str, str] = {}
    for lead in leads:
        n_levels = (len(lead) - len(made)) // written
        length = len(now) + n_levels * len(wanted)
        if length < 0:
            return None
        moved[lead] = (now + wanted * n_levels)[:length]
    return "\n".join([first, *(moved[_lead(line)] + line.lstrip(_WHITE) if line.strip() else "" for line in below)])


def _lead(line: str) -> str:
    return line[: len(line) - len(line.lstrip(_WHITE))]


def _level(made: str, now: str, leads: set[str]) -> tuple[int, str] | None:
    """How many characters of `leads` (which divides all of them) become which text."""
    if leads == {made}:
        return 1, ""
    theirs, ours = set(made).union(*leads), set(now)
    if len(theirs) > 1 or len(ours) > 1:
        return None
    if not ours or theirs == ours:
        return None if _other_width(made, now, leads) else (1, theirs.pop() if theirs else "")
    if ours == {"\t"}:
        return _to_tabs(made, now, leads)
    n_blanks, odd = divmod(len(now), len(made)) if made else (0, 0)
    return (1, " " * n_blanks) if n_blanks in _WIDTHS and n_blanks < max(_WIDTHS) and not odd else None


def _step(made: str, leads: set[str]) -> int:
    """The smallest difference between two indentations."""
    lengths = sorted({len(made), *map(len, leads)})
    return min(deeper - outer for outer, deeper in itertools.pairwise(lengths))


def _other_width(made: str, now: str, leads: set[str]) -> bool:
    """Whether both write blanks, and the text's own step fits its place but not `now`: the levels may be of another width there."""
    step = _step(made, leads)
    return "\t" not in made + now and step in _WIDTHS and not len(made) % step and len(now) % step > 0


def _to_tabs(made: str, now: str, leads: set[str]) -> tuple[int, str] | None:
    same_depth, odd = divmod(len(made), len(now))
    for width in (0 if odd else same_depth, _step(made, leads)):
        if width in _WIDTHS and not any(len(lead) % width for lead in (made, *leads)):
            return width, "\t"
    return None
