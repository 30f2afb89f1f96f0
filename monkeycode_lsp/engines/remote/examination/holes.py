"""Small pieces of code with a hole that only who reads what follows it can fill, and how well an answer fills one.  Pure."""

from __future__ import annotations

import difflib

import msgspec

from monkeycode_lsp.domain import Window
from monkeycode_lsp.prompt import Markers

MAX_TOKENS = 24
"""More than any of them takes."""
FILLED = 0.6
"""Mean likeness from which on a model fills in: two of three, or one and something near it twice."""

_NEAR = 0.5
"""What an answer is worth at most that is only similar."""
_ENOUGH = 6
"""So many characters of what follows tell that the answer has run into it."""


class Hole(msgspec.Struct, frozen=True):
    """One of them.  The name that belongs into it stands after it only."""

    language: str
    prefix: str
    suffix: str
    expected: str

    @property
    def window(self) -> Window:
        return Window(prefix=self.prefix, suffix=self.suffix, language=self.language, path="")


HOLES = (
    Hole("python", "def area(width, height):\n    ", "\n    return surface\n", "surface = width * height"),
    Hole(
        "javascript",
        "const prices = [3, 5, 8];\nlet ",
        " = 0;\nfor (const price of prices) {\n  grandTotal += price;\n}\n",
        "grandTotal",
    ),
    Hole("c", "int ", "(int x)\n{\n    return x * x;\n}\n\nint main(void)\n{\n    return square_of(4);\n}\n", "square_of"),
)


def likeness(hole: Hole, said: str) -> float:
    """From 0 to 1; 1: what was expected, and then the end or what follows the hole."""
    text, expected = _squeezed(said), _squeezed(hole.expected)
    if text.startswith(expected):
        rest, after = text[len(expected) :], _squeezed(hole.suffix)
        n_seen = min(len(rest), _ENOUGH)
        if rest[:n_seen] == after[:n_seen] or (hole.suffix.startswith("\n") and said.strip().startswith(f"{hole.expected}\n")):
            return 1.0
    return _NEAR * difflib.SequenceMatcher(None, expected, text[: len(expected)], autojunk=False).ratio()


def shows(markers: Markers, said: str) -> bool:
    """Whether one of the markers came back as text."""
    return any(marker in said for marker in (markers.prefix, markers.suffix, markers.middle) if marker)


def _squeezed(text: str) -> str:
    """White space tells nothing here."""
    return "".join(text.split())
