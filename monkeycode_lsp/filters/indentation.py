"""Leading white space: not twice, and in the document's own kind.

Odd indentation is the author's: aligned continuation lines are never touched.
"""

from __future__ import annotations

import re

from monkeycode_lsp.domain import Window

_LEAD = re.compile(r"^[ \t]+(?=[^\s*])", re.MULTILINE)
_OPENS = re.compile(r"(?:[:{(\[]|=>|->|\bdo|\bthen)\s*\Z")
_TAB_WIDTH = 4
_NEAR = 8
"""Lines that are looked at for the next one that is not blank."""


def n_columns(line: str, unit: int = _TAB_WIDTH) -> int:
    """Width of a line's leading white space."""
    lead = line[: len(line) - len(line.lstrip(" \t"))]
    return len(lead.expandtabs(unit))


def unit(window: Window) -> int:
    """Columns of one step of the document's space indentation; 4 where it does not show."""
    columns = [len(match.group()) for match in _LEAD.finditer(window.prefix + window.suffix) if "\t" not in match.group()]
    steps = [abs(after - before) for before, after in zip([0, *columns], columns, strict=False)]
    likely = [step for step in steps if 1 < step <= 8]  # noqa: PLR2004 - no style indents by one column or by more than eight
    return max(set(likely), key=lambda step: (likely.count(step), -step), default=_TAB_WIDTH)


def without_given_lead(text: str, window: Window) -> str:
    """The indentation that the cursor's line already has, said again."""
    before = window.line_before
    if before.strip() or not before or text[:1] not in {" ", "\t", "\n"}:
        return text
    stripped = text.lstrip("\n")
    if stripped != text and stripped.strip():
        text = stripped if not stripped.startswith(before) else stripped[len(before) :]
    lead = text[: len(text) - len(text.lstrip(" \t"))]
    if not lead or n_columns(before) + n_columns(lead) == _expected(window):
        return text
    return text.lstrip(" \t")


def as_deep_as_what_follows(text: str, window: Window) -> str:
    """One statement of Python in an empty line: what follows it belongs to the same block, unless it opens one itself."""
    line = text.strip("\n")
    if window.language != "python" or window.line_before or window.line_after.strip() or "\n" in line or not line.strip():
        return text
    following = next((other for other in window.suffix.split("\n", _NEAR)[1:_NEAR] if other.strip()), "")
    if (
        n_columns(following) <= n_columns(line)
        or line.rstrip().endswith((":", "\\", ",", "(", "[", "{"))
        or following.lstrip().startswith("#")
    ):
        return text
    return following[: len(following) - len(following.lstrip(" \t"))] + line.lstrip(" \t")


def _expected(window: Window) -> int:
    """The column at which the line above lets a line begin."""
    above = window.prefix[: len(window.prefix) - len(window.line_before)].rstrip()
    line = above[above.rfind("\n") + 1 :]
    return n_columns(line) + (unit(window) if _OPENS.search(line) else 0)


def in_own_kind(text: str, window: Window) -> str:
    """Tabs for a document of tabs, spaces for one of spaces; nothing where a run is not a whole number of steps."""
    wanted = _kind(window)
    leads = _LEAD.findall(("x" if window.line_before.strip() else window.line_before) + text)
    odd = [lead for lead in leads if wanted and not lead.startswith(wanted)]
    if not odd:
        return text
    width = unit(window) if wanted == " " else _step(odd, window)
    if not width or (wanted == " " and any(" " in lead for lead in odd)):
        return ""

    def converted(match: re.Match[str]) -> str:
        lead = match.group()
        if lead.startswith(wanted) or (match.start() == 0 and window.line_before.strip()):
            return lead
        return " " * width * len(lead) if wanted == " " else "\t" * (len(lead) // width)

    return _LEAD.sub(converted, text)


def _kind(window: Window) -> str:
    """Space, tab, or nothing where the document has both or neither."""
    leads = {match.group()[0] for match in _LEAD.finditer(window.prefix + "x" + window.suffix)}
    if not window.line_before.strip() and window.line_before:
        leads.add(window.line_before[0])
    return leads.pop() if len(leads) == 1 else ""


def _step(leads: list[str], window: Window) -> int:
    """Columns of one step of an answer in spaces; 0: none divides all of its runs."""
    depth = window.line_before.count("\t") if not window.line_before.strip() else n_columns(window.line_before, 1)
    fitting = [step for step in (4, 2, 8, 3) if all("\t" not in lead and len(lead) % step == 0 for lead in leads)]
    return min(fitting, key=lambda step: abs(len(leads[0]) // step - depth) > 1, default=0)
