"""The syntax guarantee: with the suggestion the document has no more parse errors than without it.

An answer that breaks it is cut to the longest piece that does not, or dropped.  Where no grammar is at
hand nothing is promised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from monkeycode_lsp.context.surroundings import Surroundings
from monkeycode_lsp.domain import Window
from monkeycode_lsp.syntax import faults

MOST_CUTS = 12
"""Pieces that are tried; each is one parse."""
_PROSE = frozenset({"markdown", "plaintext", "html", "vue", "svelte"})
"""Where a fault says nothing of the text that is typed."""
_CONSTRUCTS = 1
_BEGINS = re.compile(
    r"(?!(?:else|elif|elsif|except|finally|catch|rescue|ensure|end|case|default|when|then|do|where)\b)[^\s)\]}#/*\"'<>|&.,;:+-]"
)
"""A line that begins something at the left margin; what goes on with the line above does not."""
_TOKEN = re.compile(r"\w+|[^\w\s]")


def without_faults(text: str, window: Window, around: Surroundings = Surroundings()) -> str:  # noqa: B008 - frozen
    """The longest piece of `text`, from its beginning, that brings no new parse error; empty: there is none.

    What is half-typed at the cursor is a fault already: a piece that mends it is better than a longer one that does not.
    """
    if window.language in _PROSE:
        return text
    before, after = _near_end(around.before + window.prefix), _near_start(window.suffix + around.after)
    without = _without(before, after, window.language)
    if without is None:
        return text
    most, elsewhere = without
    no_worse = ""
    for piece in _pieces(text):
        n = faults.count(before + piece + after, window.language)
        if n is None:
            continue
        if n <= elsewhere:
            return piece
        if n <= most and not no_worse:
            no_worse = piece
    return no_worse


def n_faults(text: str, window: Window, around: Surroundings) -> int:
    """Parse errors of the document with `text` put in; 0 where no grammar is at hand."""
    return faults.count(f"{around.before}{window.prefix}{text}{window.suffix}{around.after}", window.language) or 0


def _near_end(text: str) -> str:
    """The construct at the left margin in which the text ends, and the one before it: to parse more says no more."""
    at, n = len(text), 0
    while at > 0:
        at = text.rfind("\n", 0, at) + 1
        if _BEGINS.match(text, at):
            n += 1
            if n > _CONSTRUCTS:
                return text[at:]
        at -= 1
    return text


def _near_start(text: str) -> str:
    """To the end of the construct at the left margin in which the text begins, and of the one behind it."""
    at, n = text.find("\n"), 0
    while at >= 0:
        if _BEGINS.match(text, at + 1):
            n += 1
            if n > _CONSTRUCTS:
                return text[: at + 1]
        at = text.find("\n", at + 1)
    return text


@lru_cache(maxsize=4)
def _without(before: str, after: str, language: str) -> tuple[int, int] | None:
    return faults.around(before + after, len(before), language)


def _pieces(text: str) -> Iterator[str]:
    """All of it, then to the end of each line from the last one upwards, then the first line without its last tokens.

    Of which less than half would be left, that was not what the model meant.
    """
    yield text
    cuts = [at for at, character in enumerate(text) if character == "\n" and text[:at].strip()]
    first = text[: cuts[0]] if cuts else text
    tokens = [match.end() for match in _TOKEN.finditer(first) if len(first[: match.end()].strip()) * 2 >= len(first.strip())]
    for at in [*reversed(cuts), *reversed(tokens[:-1])][:MOST_CUTS]:
        piece = text[:at]
        if piece.strip():
            yield piece
