"""The text after the cursor as the engine has it already, while it is nearly the true one (pure).

Where a prompt begins with the suffix, a changed word in it costs reading everything anew.  Only the prompt gets the kept one:
what decides how much is wanted and what is shown goes by the true one.  What stands directly behind the cursor is never kept,
because an answer that leans on what is not there any more is wrong.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence

SHARE = 0.1
"""Of the true one's tokens: so far the kept one may be from it."""
_MOST_DOCUMENTS = 64
_MOST_EDITS = 48
"""Of a longer suffix too: the time to find out grows with the square."""
_TOKEN = re.compile(r"\w+|[^\w\s]|\n|[^\S\n]+")


class Sticky:
    """The suffixes sent last."""

    # The mutable state is a suffix for each document, the least recently used first.

    def __init__(self) -> None:
        self._sent: OrderedDict[str, str] = OrderedDict()

    def suffix(self, key: str, true: str) -> str:
        """What to send for `true`; `key` names the document (and whatever else has a KV cache of its own)."""
        sent = self._sent.pop(key, true)
        kept = sent if close(sent, true) else true
        self._sent[key] = kept
        if len(self._sent) > _MOST_DOCUMENTS:
            self._sent.popitem(last=False)
        return kept


def close(one: str, other: str) -> bool:
    """Whether `one` can stand for `other`, the true one: the same at its beginning, and few tokens off."""
    if one == other:
        return True
    if _beginning(one) != _beginning(other):
        return False
    first, second = _TOKEN.findall(one), _TOKEN.findall(other)
    return distance(first, second, most=min(_MOST_EDITS, int(len(second) * SHARE))) is not None


def distance(one: Sequence[str], other: Sequence[str], *, most: int) -> int | None:
    """Levenshtein's, by tokens; None: more than `most`.  Takes time for how far they are apart, not for how long they are."""
    shift = len(other) - len(one)
    # How far in `one` each diagonal has come, with so many edits.
    reached = {0: _along(one, other, 0, 0)}
    for n_edits in range(most + 1):
        if reached.get(shift, -1) >= len(one):
            return n_edits
        before, reached = reached, {}
        for diagonal in range(-n_edits - 1, n_edits + 2):
            at = max(before.get(diagonal, -2) + 1, before.get(diagonal + 1, -2) + 1, before.get(diagonal - 1, -2))
            if at >= 0 and at + diagonal >= 0:
                reached[diagonal] = _along(one, other, min(at, len(one)), diagonal)
    return None


def _along(one: Sequence[str], other: Sequence[str], at: int, diagonal: int) -> int:
    most = min(len(one), len(other) - diagonal)
    while at < most and one[at] == other[at + diagonal]:
        at += 1
    return at


def _beginning(suffix: str) -> tuple[str, str]:
    """The rest of the cursor's line, and the first line below it that says something."""
    rest, _, below = suffix.partition("\n")
    return rest, below.lstrip("\n").partition("\n")[0]
