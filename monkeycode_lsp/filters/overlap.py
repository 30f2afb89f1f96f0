"""Answers that say again what stands after the cursor on its line.

The longest match is not always the right one: `f(‸)` + `g()` must become `f(g())`.  Of all places
to cut, the one that leaves the fewest open brackets, quotes and tags is taken.
"""

from __future__ import annotations

import re

from monkeycode_lsp.domain import Window
from monkeycode_lsp.filters import brackets

_TAG = re.compile(r"<(/?)([A-Za-z][\w.-]*)[^<>]*?(/?)>")
_OPENERS = (":", "{")
_MOST = 8
_TELLING = 3
"""So many equal characters are no chance."""


def without_rest_of_line(text: str, window: Window) -> str:
    """`ret‸urn total` + `urn total` → nothing; `x = foo(‸) + 1` + `a, b) + 1` → `a, b`."""
    rest = window.line_after.rstrip()
    said = text.rstrip()
    if not rest.strip() or not said:
        return text
    first = said.partition("\n")[0].rstrip()
    if first != said and first.endswith(rest) and _n_equal(first, rest, window) == len(rest):
        return first[: -len(rest)]
    # The blank at the end may be a part of what is said again, as in `a, ` before `, b`.
    for end in dict.fromkeys((text.rstrip("\n"), said)):
        n = _n_equal(end, rest, window)
        if n:
            return end[:-n]
    # What begins with the whole rest and goes on cannot be inserted before it.
    return "" if _n_words(rest) >= _TELLING and said.lstrip().startswith(rest.strip()) else text


def unless_ended_twice(text: str, window: Window) -> str:
    """`if a and ‸len(b):` + `c in b:` → nothing: what opens a block ends its line, and this line has such an end already."""
    rest, said = window.line_after.rstrip(), text.rstrip()
    return "" if said.endswith(_OPENERS) and rest.endswith(said[-1]) and _n_words(rest) and "\n" not in said else text


def _n_equal(said: str, rest: str, window: Window) -> int:
    """How many characters at the end of `said` are those that `rest` begins with, and are better left out."""
    lengths = [n for n in range(min(len(said), len(rest)), 0, -1) if said.endswith(rest[:n])][:_MOST]
    if not lengths:
        return 0
    best, fewest = 0, _n_faults(said, window)
    for n in reversed(lengths):
        faults = _n_faults(said[:-n], window)
        if faults < fewest or (faults == fewest and _is_telling(rest, n)):
            best, fewest = n, faults
    return best


def _is_telling(rest: str, n: int) -> bool:
    if n == len(rest):
        return n >= _TELLING or not _n_words(rest)
    # Rulers such as `-----` meet themselves everywhere.
    return len(set(rest[:n])) > 1 and (n >= _TELLING or not _n_words(rest[:n]))


def _n_words(text: str) -> int:
    return sum(char.isalnum() for char in text)


def _n_faults(said: str, window: Window) -> int:
    return brackets.n_faults(said, window) + _n_open_tags(window.line_before + said + window.line_after)


def _n_open_tags(line: str) -> int:
    if "</" not in line:
        return 0
    open_tags: list[str] = []
    n_extra = 0
    for closing, name, empty in _TAG.findall(line):
        if closing:
            if open_tags and open_tags[-1] == name:
                open_tags.pop()
            else:
                n_extra += 1
        elif not empty:
            open_tags.append(name)
    return len(open_tags) + n_extra
