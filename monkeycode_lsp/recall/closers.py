"""Brackets, quotes and tags that an editor closes by itself while the user types (pure).

Whether an editor closes anything, and what, is its user's affair: every closer here is one that may
stand after the cursor, and none is one that must.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

_CLOSER = {"(": ")", "[": "]", "{": "}"}
_QUOTES = frozenset({'"', "'", "`", '"""', "'''", "```"})
_TRIPLE = ('"""', "'''", "```")
_ONE_LINE = frozenset({'"', "'"})
_TOKEN = re.compile(
    r"\\."
    r"|\"\"\"|'''|```"
    r"|</(?P<end>[A-Za-z][\w.:-]*)\s*>"
    r"|<(?P<tag>[A-Za-z][\w.:-]*)(?:\s[^<>(){}\[\]]*)?(?<!/)>"
    r"|[()\[\]{}\"'`\n]",
    re.DOTALL,
)
_STRING_PREFIX = re.compile(r"(?<!\w)(?:[bftu]?r|r[bft]|[bfutlne]|u8)\Z", re.IGNORECASE)
"""Of the languages that write one before a string or character in single quotes."""
_LONGEST_PREFIX = 2
_LIFETIME = re.compile(r"(?<=[&<+])'[a-z_]\w{0,30}\b(?!')|'(?:static|_)\b(?!')")
_GAP = re.compile(r"\n[ \t]*| ?")
_DEEP = 32
"""No code is nested as deep; text that is must not cost more."""
_MOST = 4_000
"""Characters that are read at most; what would take more is not known."""
CLOSING = frozenset(")]}\"'`<")
"""What a closer begins with."""


class Opened(msgspec.Struct, frozen=True):
    """What some text has left open, outermost first, and what it has closed."""

    line: str
    """What was read, and what will probably follow."""
    end: int
    """Up to here it was read."""
    stack: tuple[str, ...]
    """The closers that are still to come."""
    n_before: int
    """So many of them were open before the text began."""
    over: tuple[str, ...]
    """Closers in the text of what was open before it, in order."""
    part_at: int
    """Where the token begins that the text ends in: two of three quotes, an escape, a tag; at the end if there is none."""
    part_stack: tuple[str, ...]
    """What was open there.  The rest of the stack was opened by that part of a token, read as if it were all."""


class Standing(msgspec.Struct, frozen=True):
    """One way to read what stands after the cursor."""

    n_characters: int
    """Up to here it was put there by the editor."""
    depths: tuple[int, ...] = ()
    """Whose closers these are, as places in the stack."""


def opened(before: str, typed: str, ahead: str, *, whole: bool) -> Opened | None:
    """What `typed`, put after `before`, leaves open; `ahead` is what will probably follow, up to its end if `whole`.

    None: it is too long to be read.
    """
    if len(before) + len(typed) > _MOST:
        return None
    line, start, end = before + typed + ahead, len(before), len(before) + len(typed)
    tokens, part_at = _tokens(line, end)
    reader = _Reader(line, ())
    n_before, over, part_stack = 0, [], None
    for match in tokens:
        if part_stack is None and match.start() >= part_at:
            part_stack = tuple(reader.stack)
        is_before = match.end() <= start
        depth = reader.read(match, whole=whole or is_before)
        if is_before:
            n_before = len(reader.stack)
        elif depth is not None and depth < n_before and match.group() != "\n":
            over.append(match.group())
            n_before = n_before if depth < 0 else depth
    stack = tuple(reader.stack)
    return Opened(line, end, stack, n_before, tuple(over), part_at, stack if part_stack is None else part_stack)


def standing(suffix: str, found: Opened, typed: str) -> Iterator[Standing]:
    """The ways in which `suffix` may begin with closers of what was opened: without any first, with the most last."""
    at = 0
    depths: list[int] = []
    yield Standing(0)
    for depth in range(len(found.stack) - 1, max(found.n_before, len(found.stack) - _DEEP) - 1, -1):
        if not found.stack[depth]:
            continue
        gap = _GAP.match(suffix, at)
        start = gap.end() if gap is not None and gap.group().strip(" \t") in typed else at
        if suffix.startswith(found.stack[depth], start):
            at = start + len(found.stack[depth])
            depths.append(depth)
            yield Standing(at, tuple(depths))


def typed_over(suffix: str, found: Opened) -> list[int]:
    """How much of `suffix`, that stood after the cursor, may have been typed over: none first, the most last."""
    ends = [0]
    for closer in found.over[:_DEEP]:
        if not suffix.startswith(closer, ends[-1]):
            break
        ends.append(ends[-1] + len(closer))
    return ends


def until_closed(found: Opened, stands: Standing, suffix: str, *, whole: bool) -> str | None:
    """What will probably follow, up to where it would close again what is closed after the cursor; None: that is too far to be read."""
    deepest = max(stands.depths)
    at, stack = found.part_at, found.part_stack
    if deepest >= len(stack):
        # The editor has closed what a part of a token opened.
        if found.line.startswith(_TRIPLE, at):
            return ""
        at, stack = found.end, found.stack
    reader = _Reader(found.line, stack)
    for match in _TOKEN.finditer(found.line, at):
        if match.start() > at + _MOST:
            return None
        depth = reader.read(match, whole=whole)
        if depth is None:
            continue
        if depth in stands.depths if match.group() == "\n" else 0 <= depth <= deepest:
            return _without_gap(found.line[found.end : match.start()], suffix)
    return found.line[found.end :]


def _without_gap(text: str, suffix: str) -> str:
    """Without the white space that stands before the closer already."""
    if suffix.startswith("\n"):
        return text.rstrip(" \t\n")
    return text.removesuffix(" ") if suffix.startswith(" ") else text


def _tokens(line: str, end: int) -> tuple[list[re.Match[str]], int]:
    """The tokens up to `end`, and where the one begins that goes on after it; of that, what a part of it looks like."""
    tokens: list[re.Match[str]] = []
    for match in _TOKEN.finditer(line):
        if match.start() >= end:
            break
        if match.end() > end:
            return [*tokens, *_TOKEN.finditer(line, match.start(), end)], match.start()
        tokens.append(match)
    return tokens, end


class _Reader:
    """Follows a line, token by token, and keeps what is open."""

    # The mutable state is the stack of closers to come, the place in it of the quote that is open (-1: none is), and
    # where the next of each quote stands; it changes in `read` only, and in what that calls.

    def __init__(self, line: str, stack: tuple[str, ...]) -> None:
        self.stack = list(stack)
        self._line = line
        self._quote = next((depth for depth in range(len(stack) - 1, -1, -1) if stack[depth] in _QUOTES), -1)
        self._next: dict[str, int] = {}

    def read(self, match: re.Match[str], *, whole: bool) -> int | None:
        """The place in the stack of what the token closes (-1: of nothing); None: it is no closer.

        A line's end closes the quotes that are good for one line only; what they enclose stays open, as they were none.
        """
        found = match.group()
        opens = self._opens(match)
        if opens:
            if opens in _QUOTES:
                self._quote = len(self.stack)
            self.stack.append(opens)
            return None
        if found.startswith("\\"):
            return None
        if found == "\n":
            return self._end_line()
        if found in _QUOTES:
            depth = self._quote
            if depth < 0 or self.stack[depth] != found:
                return None
        else:
            depth = self._depth(f"</{match['end']}>" if match["end"] else found, match.end(), whole=whole)
        if depth >= 0:
            del self.stack[depth:]
            self._quote = -1 if self._quote >= depth else self._quote
        return depth

    def _opens(self, match: re.Match[str]) -> str:
        """The closer of what a token opens; empty: it opens nothing."""
        found = match.group()
        if found in _QUOTES:
            return "" if self._quote >= 0 or (found == "'" and _is_apostrophe(self._line, match.start())) else found
        return f"</{match['tag']}>" if match["tag"] else _CLOSER.get(found, "")

    def _end_line(self) -> int | None:
        depth = self._quote
        if depth < 0 or self.stack[depth] not in _ONE_LINE:
            return None
        self.stack[depth] = ""
        self._quote = -1
        return depth

    def _depth(self, closer: str, at: int, *, whole: bool) -> int:
        """What `closer` closes: nothing outside of the string it stands in, unless that never ends and so is none."""
        lowest = max(0, len(self.stack) - _DEEP)
        if self._quote >= lowest and not self._never_comes(self.stack[self._quote], at, whole=whole):
            lowest = self._quote + 1
        inside_out = self.stack[lowest:][::-1]
        return len(self.stack) - 1 - inside_out.index(closer) if closer in inside_out else -1

    def _never_comes(self, quote: str, at: int, *, whole: bool) -> bool:
        comes = self._find(quote, at)
        end = self._find("\n", at) if quote in _ONE_LINE else len(self._line)
        return comes > end or (comes == end and whole)

    def _find(self, what: str, at: int) -> int:
        """Where `what` comes next; the line's length: it does not.  Reads nothing twice, as `at` only grows."""
        known = self._next.get(what, -1)
        if known < at:
            found = self._line.find(what, at)
            known = self._next[what] = found if found >= 0 else len(self._line)
        return known


def _is_apostrophe(text: str, at: int) -> bool:
    """`don't` and the lifetime in `&'a str`, but neither `'a'` nor `f'a'`."""
    if at == 0:
        return False
    if _is_word(text[at - 1]):
        return _STRING_PREFIX.search(text, max(0, at - _LONGEST_PREFIX - 1), at) is None
    return _LIFETIME.match(text, at) is not None


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"
