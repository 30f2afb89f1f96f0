"""LSP's idea of lines and positions, and a document that follows edits.

Lines end at LF, CRLF or a lone CR and at nothing else: form feed, NEL or U+2028 are ordinary
characters.  An edit costs what the edit costs, not what the document costs.

Read `Document` first.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence

import msgspec

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_TERMINATORS = "\r\n"
_BLOCK = 4_096
"""Characters of a line that are counted together: an endless one is not copied to find a column in it."""


class Encoding(enum.Enum):
    """What a column counts."""

    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"


_CODECS = {Encoding.UTF8: "utf-8", Encoding.UTF16: "utf-16-le", Encoding.UTF32: "utf-32-le"}


class Change(msgspec.Struct, frozen=True):
    """One edit, in the client's units.  `start` is None for a whole new text."""

    text: str
    start: tuple[int, int] | None = None
    end: tuple[int, int] | None = None


class Span(msgspec.Struct, frozen=True):
    """Lines `first` to `old_stop` (exclusive) were replaced, and are now those from `first` to `new_stop`."""

    first: int
    old_stop: int
    new_stop: int


def split_lines(text: str) -> list[str]:
    """Lines with their terminators; the last one has none (and may be empty)."""
    if "\r" not in text:
        *ended, last = text.split("\n")
        return [f"{line}\n" for line in ended] + [last]
    lines = _LINE.findall(text)
    if lines[-1][-1] in _TERMINATORS:
        lines.append("")
    return lines


def lf(text: str) -> str:
    """`text` with LF as its only line end."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def units_to_column(line: str, units: int, encoding: Encoding) -> int:
    """Code-point column of `units` in `line`; clamped, and never inside a character."""
    content = len(line) - len(line[-2:]) + len(line[-2:].rstrip(_TERMINATORS))
    if units <= 0:
        return 0
    if encoding is Encoding.UTF32 or line.isascii():
        return min(units, content)
    column = 0
    for start in range(0, content, _BLOCK):
        block = line[start : min(start + _BLOCK, content)]
        n = _n_units(block, encoding)
        if n > units:
            return column + _column(block, units, encoding)
        units -= n
        column += len(block)
    return column


def column_to_units(line: str, column: int, encoding: Encoding) -> int:
    """The client's units for a code-point column."""
    if encoding is Encoding.UTF32 or line.isascii():
        return min(column, len(line))
    column = min(column, len(line))
    return sum(_n_units(line[start : min(start + _BLOCK, column)], encoding) for start in range(0, column, _BLOCK))


def _n_units(text: str, encoding: Encoding) -> int:
    if text.isascii():
        return len(text)
    n_bytes = len(text.encode(_CODECS[encoding], "surrogatepass"))
    return n_bytes // 2 if encoding is Encoding.UTF16 else n_bytes


def _column(text: str, units: int, encoding: Encoding) -> int:
    """How many characters of `text` have come to their end after `units`."""
    for column, character in enumerate(text):
        units -= _n_units(character, encoding)
        if units < 0:
            return column
    return len(text)


def prevailing_eol(lines: Sequence[str]) -> str:
    """The line end of the first lines that have one; LF if none has."""
    counts = {"\n": 0, "\r\n": 0, "\r": 0}
    for line in lines[:100]:
        for eol in ("\r\n", "\n", "\r"):
            if line.endswith(eol):
                counts[eol] += 1
                break
    return max(counts, key=lambda eol: counts[eol])


class Document:
    """One open text document.

    The mutable state is the list of lines, the version and the size; it changes in `apply` only.
    A list that was handed out by `share` is copied before the next change.
    """

    def __init__(self, uri: str, language: str, version: int, text: str, encoding: Encoding) -> None:
        self.uri = uri
        self.language = language
        self.version = version
        self.encoding = encoding
        self._lines = split_lines(text)
        self._shared = False
        self._n_chars = len(text)
        self._n_nuls = text.count("\0")

    @property
    def n_chars(self) -> int:
        return self._n_chars

    @property
    def n_nuls(self) -> int:
        return self._n_nuls

    @property
    def eol(self) -> str:
        return prevailing_eol(self._lines)

    @property
    def text(self) -> str:
        """The whole text.  Costs what the document costs: for tests and small documents."""
        return "".join(self._lines)

    @property
    def lines(self) -> Sequence[str]:
        """The lines as they are until the next change."""
        return self._lines

    def share(self) -> list[str]:
        """The lines, never changed afterwards."""
        self._shared = True
        return self._lines

    def is_same_as(self, shared: Sequence[str]) -> bool:
        """Whether nothing was changed since `share` gave that list out."""
        return self._lines is shared

    def locate(self, line: int, units: int) -> tuple[int, int]:
        """(line, code-point column) of a client's position, clamped into the text."""
        if line < 0:
            return 0, 0
        if line >= len(self._lines):
            return len(self._lines) - 1, len(self._lines[-1])
        return line, units_to_column(self._lines[line], units, self.encoding)

    def apply(self, change: Change) -> Span | None:
        """Follow one edit; the lines that it changed, None: all of them."""
        if change.start is None or change.end is None:
            self._lines = split_lines(change.text)
            self._shared = False
            self._n_chars = len(change.text)
            self._n_nuls = change.text.count("\0")
            return None
        start, end = self.locate(*change.start), self.locate(*change.end)
        if end < start:
            start, end = end, start
        return self._replace(start, end, change.text)

    def _replace(self, start: tuple[int, int], end: tuple[int, int], inserted: str) -> Span:
        (first, start_column), (last, end_column) = start, end
        lines = self._lines
        removed = _between(lines, start, end)
        self._n_chars += len(inserted) - sum(map(len, removed))
        self._n_nuls += inserted.count("\0") - sum(piece.count("\0") for piece in removed)
        text = "".join((lines[first][:start_column], inserted, lines[last][end_column:]))
        is_one_line = not any(end in inserted for end in _TERMINATORS)
        if first and text.startswith("\n") and lines[first - 1].endswith("\r"):
            # The CR of the line above and this LF have become one line end.
            first -= 1
            text = lines[first] + text
        stop = last + 1
        if text.endswith("\r") and stop < len(lines) and lines[stop].startswith("\n"):
            text += lines[stop]
            stop += 1
        # To look for line ends takes its time in an endless line, and a letter has none.
        new = [text, *([""] if text.endswith(("\r", "\n")) else [])] if is_one_line else split_lines(text)
        if stop < len(lines):
            # `split_lines` closes with an empty line unless the text ends without a terminator,
            # in which case it runs on into the next line.
            tail = new.pop()
            if tail:
                new.append(tail + lines[stop])
                stop += 1
        if self._shared:
            self._lines = lines = lines.copy()
            self._shared = False
        lines[first:stop] = new
        return Span(first, stop, first + len(new))


def _between(lines: Sequence[str], start: tuple[int, int], end: tuple[int, int]) -> list[str]:
    """The text from `start` to `end`, in pieces."""
    (first, start_column), (last, end_column) = start, end
    if first == last:
        return [lines[first][start_column:end_column]]
    return [lines[first][start_column:], *lines[first + 1 : last], lines[last][:end_column]]
