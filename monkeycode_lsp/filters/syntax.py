"""The syntax guarantee: with the suggestion the document has no more parse errors than without it.

An answer that breaks it is cut to the longest piece that does not, or dropped.  Where no grammar is at
hand nothing is promised.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from functools import lru_cache

from monkeycode_lsp.context.surroundings import Surroundings
from monkeycode_lsp.domain import Window
from monkeycode_lsp.syntax import faults
from monkeycode_lsp.syntax.faults import Ends

MOST_CUTS = 12
"""Pieces that are tried; each is one parse."""
MOST_PARSED = 30_000
"""Characters, all of them together: two milliseconds."""
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
    before, after, cut = _near(window, around)
    without = _without(before, after, window.language, cut)
    if without is None:
        return text
    most, elsewhere = without
    no_worse = ""
    for piece in itertools.islice(_pieces(text), max(2, min(1 + MOST_CUTS, MOST_PARSED // (len(before) + len(after) + len(text) + 1)))):
        n = faults.count(before + piece + after, window.language, cut=cut)
        if n is None:
            break  # to look for more would take too long
        if n <= elsewhere:
            return piece
        if n <= most and not no_worse:
            no_worse = piece
    return no_worse


def n_faults(text: str, window: Window, around: Surroundings) -> int:
    """Parse errors of the document with `text` put in; 0 where no grammar is at hand."""
    before, after, cut = _near(window, around)
    return faults.count(before + text + after, window.language, cut=cut) or 0


def _near(window: Window, around: Surroundings) -> tuple[str, str, Ends]:
    """The text before and after the cursor that is parsed, and where it is cut inside of something."""
    whole_before, whole_after = around.before + window.prefix, window.suffix + around.after
    before, after = _near_end(whole_before), _near_start(whole_after)
    is_cut = around.cut_before if around.before else not window.whole_prefix
    ends_inside = around.cut_after if around.after else not window.whole_suffix
    return before, after, Ends(is_cut and before == whole_before, ends_inside and after == whole_after)


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
def _without(before: str, after: str, language: str, cut: Ends) -> tuple[int, int] | None:
    return faults.around(before + after, len(before), language, cut=cut)


def _pieces(text: str) -> Iterator[str]:
    """All of it, then to the end of each line from the last one upwards, then the first line without its last tokens.

    Of which less than half would be left, that was not what the model meant.
    """
    yield text
    cuts = [at for at, character in enumerate(text) if character == "\n" and text[:at].strip()]
    first = text[: cuts[0]] if cuts else text
    tokens = [match.end() for match in _TOKEN.finditer(first) if len(first[: match.end()].strip()) * 2 >= len(first.strip())]
    for at in [*reversed(cuts), *reversed(tokens[:-1])]:
        piece = text[:at]
        if piece.strip():
            yield piece
