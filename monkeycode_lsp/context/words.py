"""The identifiers of a text, and how alike two texts are (pure).

Nothing here looks at more than a bounded part of a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORD = re.compile(r"[^\W\d]\w{1,63}")
LOOKED_AT = 40_000
"""Characters of a text; the rest of a longer one is not looked at."""
_TELLING_LINE = 4
"""A shorter line (a bracket, `else`) says nothing of where it stands."""

COMMON = frozenset(
    """
    and as assert async await begin bool boolean break case catch char class const constexpr continue def default defer del delete do
    double elif else elsif end endif enum except export extends extern false False final finally float fn for foreach from func function
    get global go goto if impl implements import in include inline instanceof int interface is lambda let local long match mod module mut
    namespace new nil None nonlocal not null nullptr NULL of or override package pass private protected pub public raise readonly ref
    register require return self Self set short signed sizeof static str string String struct super switch template then this throw throws
    trait true True try type typedef typeof typename undefined union unless unsafe unsigned use using val var virtual void volatile when
    where while with yield
    """.split()  # noqa: SIM905 - a list of 130 quoted words is harder to read
)
"""Words of the languages themselves: they say nothing of what a text is about."""


def words(text: str) -> frozenset[str]:
    """The identifiers in `text`, without the languages' own words."""
    return frozenset(_WORD.findall(text[:LOOKED_AT])) - COMMON


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """What two texts have in common of all their words, 0 to 1 (Jaccard's index); 0 where there are none."""
    common = len(one & other)
    return common / (len(one) + len(other) - common) if common else 0.0


def lines(text: str) -> frozenset[str]:
    """The lines of `text` that tell where they stand, whatever their indentation."""
    return telling(text[:LOOKED_AT].split("\n"))


def telling(several: Iterable[str]) -> frozenset[str]:
    """Of several lines, those that tell where they stand."""
    return frozenset(line for line in map(str.strip, several) if len(line) >= _TELLING_LINE)


def contained(part: frozenset[str], whole: frozenset[str]) -> float:
    """The share of `part` that `whole` has as well, 0 to 1; an empty part is contained."""
    return len(part & whole) / len(part) if part else 1.0
