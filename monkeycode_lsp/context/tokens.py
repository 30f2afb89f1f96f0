"""How many tokens a text takes, where the engine's own tokenizer is not at hand (pure).

Tokenizers of code models cut text at much the same places: words, digits, runs of punctuation, indentation.
Counting those pieces is within 5 % of the default model's tokenizer over a hundred lines of nearly every language,
where a fixed number of characters a token is 10 to 30 % off.  What is left is a factor, by language, and by the
model itself once it has told what its prompts took (see `calibration`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Protocol

import msgspec

_PIECE = re.compile(r"[A-Z]?[a-z]{1,9}|[A-Z]{1,4}|\d|[^\w\s]{1,3}\n?|[ \t]{2,}|\n")
_LONG = 2_000
"""Longer texts are not counted but sampled, so that an endless line costs no more than a long one."""
_SAMPLE = 500


class Rates(msgspec.Struct, frozen=True):
    """What a piece of text costs."""

    piece: float = 0.96
    """Tokens of one piece of ASCII text."""
    other: float = 1.2
    """Tokens of one character beyond ASCII.  Tokenizers differ much: from a third (Cyrillic) to three (rare scripts, old ones)."""


_PIECES_PER_TOKEN = {
    "bat": 0.99, "c": 0.98, "cmake": 1.09, "cpp": 1.05, "css": 1.08, "cuda-cpp": 1.05, "go": 1.04, "html": 0.97, "ini": 1.01, "javascript": 1.09,
    "json": 1.0, "jsonc": 1.0, "less": 1.08, "lua": 1.03, "makefile": 0.95, "markdown": 1.08, "perl": 0.99, "php": 1.04, "plaintext": 1.03,
    "python": 1.05, "restructuredtext": 1.04, "scss": 1.08, "shellscript": 0.99, "sql": 1.03, "toml": 1.02, "typescript": 1.04, "viml": 0.89,
    "xml": 1.0, "yaml": 1.06,
}  # fmt: skip
"""Measured with the default model's tokenizer over system libraries and packages, 100 lines of up to 120 files each:
`python -m monkeycode_lsp.bench.token_rates`.  What is not listed takes the mean of all, 1.04."""
_ALIKE = {
    "javascriptreact": "javascript",
    "typescriptreact": "typescript",
    "objective-c": "c",
    "objective-cpp": "cpp",
    "cuda": "cuda-cpp",
    "vim": "viml",
}


@lru_cache(maxsize=256)
def rates(language: str) -> Rates:
    """What to begin with in `language`."""
    measured = _PIECES_PER_TOKEN.get(_ALIKE.get(language, language))
    return Rates(piece=1 / measured) if measured else Rates()


class Counter(Protocol):
    """Says what text costs, at once."""

    def line(self, text: str) -> float:
        """Tokens of a whole line, its end included."""
        ...

    def part(self, text: str) -> float:
        """Tokens of any other text."""
        ...


class Estimate(msgspec.Struct, frozen=True):
    """A `Counter` by rates alone."""

    rates: Rates = Rates()

    def line(self, text: str) -> float:
        """See `Counter`."""
        # Called for every line of a window: no call more than it takes.
        n_pieces, n_other = _counted(text) if len(text) <= _LONG else shape(text)
        rates = self.rates
        return n_pieces * rates.piece + n_other * rates.other

    part = line


def estimate(text: str, at: Rates = Rates()) -> float:  # noqa: B008 - frozen
    """Tokens that `text` will probably take."""
    n_pieces, n_other = shape(text)
    return n_pieces * at.piece + n_other * at.other


def shape(text: str) -> tuple[float, float]:
    """Pieces of ASCII text, and characters beyond ASCII."""
    if len(text) <= _LONG:
        return _counted(text)
    middle = len(text) // 2
    n_pieces, n_other = _counted(text[:_SAMPLE] + text[middle : middle + _SAMPLE] + text[-_SAMPLE:])
    share = len(text) / (3 * _SAMPLE)
    return n_pieces * share, n_other * share


def shape_of_lines(text: str) -> tuple[float, float]:
    """The same of a text of many lines, as the sum of its lines."""
    shapes = [shape(line) for line in text.splitlines(keepends=True)]
    return sum(n_pieces for n_pieces, _ in shapes), sum(n_other for _, n_other in shapes)


@lru_cache(maxsize=4_096)
def _counted(text: str) -> tuple[int, int]:
    """Most lines around the cursor are those of the last ask."""
    if text.isascii():
        return len(_PIECE.findall(text)), 0
    plain = text.encode("ascii", "ignore").decode("ascii")
    return len(_PIECE.findall(plain)), len(text) - len(plain)
