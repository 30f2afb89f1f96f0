"""How many lines an answer may have."""

from __future__ import annotations


def limit(text: str, max_lines: int) -> str:
    """The first lines with something on them; empty ones at the start do not count."""
    start = len(text) - len(text.lstrip())
    end = start
    for _ in range(max_lines):
        end = text.find("\n", end + 1) if end >= 0 else -1
        if end < 0:
            return text
    return text[:end]
