"""The shape of a line: its tokens with every name, number and literal left out (pure).

Lines of the same shape have the same number of names, so that those can be told apart pairwise.
No line costs more than its own length, and a line longer than `LONGEST` has no shape.
"""

from __future__ import annotations

import re
from typing import NamedTuple

LONGEST = 400
"""Characters; what is longer is data and not code."""
TOKEN = re.compile(
    r"""
      (?P<name>[^\W\d]\w*)
    | (?P<number>\d[\w.]*)
    | (?P<string>\"\"\"[\s\S]*?(?:\"\"\"|\Z) | '''[\s\S]*?(?:'''|\Z)
        | "(?:[^"\\\n]|\\.)*+"? | '(?:[^'\\\n]|\\.)*+'? | `[^`]*+`)
    | (?P<mark>[^\s\w])
    """,
    re.VERBOSE,
)
_REMEMBERED = 2_000
_WORDS = (
    "False None Self True abstract and as assert async await begin bool boolean break case catch char class const "
    "constexpr continue def default defer del delete do double elif else elsif end ensure enum except export "
    "extends extern false final finally float fn for foreach from func function global go goto if impl implements "
    "import in include instanceof int interface is lambda let long loop match mod module mut namespace new nil none "
    "nonlocal not null nullptr operator or package pass private protected pub public raise range require rescue "
    "return self short signed static str string struct super switch then this throw throws trait true try type "
    "typedef typeof undefined union unless unsigned until use using var virtual void when where while with yield"
)
KEYWORDS = frozenset(_WORDS.split())
"""Of the common languages together: no name here is ever another one elsewhere."""


class Line(NamedTuple):
    """One line that is not blank."""

    indent: str
    text: str
    """Without its indentation and trailing white space."""
    shape: tuple[str, ...]
    names: tuple[str, ...]
    """In the order of the text; keywords are none."""
    key: int
    """Equal for lines of the same shape, and hardly ever for others."""


def lexed(text: str) -> Line | None:
    """What a line is made of; None for one that is blank or too long."""
    if len(text) > LONGEST or not text.strip():
        return None
    shape: list[str] = []
    names: list[str] = []
    for token in TOKEN.finditer(text):
        kind, said = token.lastgroup, token[0]
        if kind == "name" and said not in KEYWORDS:
            names.append(said)
            shape.append("name")
        else:
            shape.append(f"a {kind}" if kind in {"number", "string"} else said)
    shaped = tuple(shape)
    bare = text.strip()
    return Line(text[: len(text) - len(text.lstrip())], bare, shaped, tuple(names), hash(shaped))


class Lexer:
    """Remembers what lines are made of: while the user types in one line, the same others are compared again and again."""

    # The mutable state is the lines that were read; it changes in `read` only.

    def __init__(self) -> None:
        self._lines: dict[str, Line | None] = {}

    def read(self, text: str) -> Line | None:
        """See `lexed`."""
        if text in self._lines:
            return self._lines[text]
        if len(text) > LONGEST:
            return None
        if len(self._lines) >= _REMEMBERED:
            self._lines.clear()
        made = self._lines[text] = lexed(text)
        return made
