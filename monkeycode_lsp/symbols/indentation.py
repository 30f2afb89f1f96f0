"""How a file is indented (pure)."""

from __future__ import annotations

from collections import Counter

_USUAL = "    "
_LOOKED_AT = 40_000
"""Characters of a file."""
_WIDEST = 8


def step(text: str) -> str:
    """What one more level begins with: a tab or so many spaces, by most of the lines that go deeper than the one before."""
    steps: Counter[str] = Counter()
    before = ""
    for line in text[:_LOOKED_AT].split("\n"):
        if not line.strip():
            continue
        lead = line[: len(line) - len(line.lstrip())]
        more = lead.removeprefix(before) if lead.startswith(before) else ""
        if more == "\t" or (more and not more.strip(" ") and 1 < len(more) <= _WIDEST):
            steps[more] += 1
        before = lead
    return max(steps, key=lambda more: (steps[more], -len(more)), default=_USUAL)
