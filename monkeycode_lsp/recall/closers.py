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
_ONE_LINE = frozenset({'"', "'"})
_TOKEN = re.compile(
    r"\\."
    r"|\"\"\"|'''|```"
    r"|</(?P<end>[A-Za-z][\w.:-]*)\s*>"
    r"|<(?P<tag>[A-Za-z][\w.:-]*)(?:\s[^<>(){}\[\]]*)?(?<!/)>"
    r"|[()\[\]{}\"'`\n]",
    re.DOTALL,
)
_GAP = re.compile(r"\n[ \t]*| ?")
_DEEP = 32
"""No code is nested as deep; text that is must not cost more."""
CLOSING = frozenset(")]}\"'`<")
"""What a closer begins with."""


class Opened(msgspec.Struct, frozen=True):
    """What some text has left open, outermost first, and what it has closed."""

    stack: tuple[str, ...]
    """The closers that are still to come."""
    n_before: int
    """So many of them were open before the text began."""
    over: tuple[str, ...]
    """Closers in the text of what was open before it, in order."""


class Standing(msgspec.Struct, frozen=True):
    """One way to read what stands after the cursor."""

    n_characters: int
    """Up to here it was put there by the editor."""
    depths: tuple[int, ...] = ()
    """Whose closers these are, as places in the stack."""


def opened(before: str, typed: str, ahead: str, *, whole: bool) -> Opened:
    """What `typed`, put after `before`, leaves open; `ahead` is what will probably follow, up to its end if `whole`."""
    text, start, end = before + typed + ahead, len(before), len(before) + len(typed)
    stack: list[str] = []
    for _ in _closers(text, 0, start, stack, whole=True):
        pass
    n_before, over = len(stack), []
    for match, depth in _closers(text, start, end, stack, whole=whole):
        if depth < n_before and match.group() != "\n":
            over.append(match.group())
            n_before = n_before if depth < 0 else depth
    return Opened(tuple(stack), n_before, tuple(over))


def standing(suffix: str, found: Opened, typed: str) -> Iterator[Standing]:
    """The ways in which `suffix` may begin with closers of what was opened: without any first, with the most last."""
    at = 0
    depths: list[int] = []
    yield Standing(0)
    for depth in range(len(found.stack) - 1, found.n_before - 1, -1):
        if not found.stack[depth]:
            continue
        gap = _GAP.match(suffix, at)
        start = gap.end() if gap is not None and gap.group().strip(" \t") in typed else at
        if suffix.startswith(found.stack[depth], start):
            at = start + len(found.stack[depth])
            depths.append(depth)
            yield Standing(at, tuple(depths))


def until_closed(text: str, found: Opened, stands: Standing, suffix: str, *, whole: bool) -> str:
    """`text` up to where it would close again what is closed after the cursor."""
    stack = list(found.stack)
    deepest = max(stands.depths, default=len(stack))
    for match, depth in _closers(text, 0, len(text), stack, whole=whole):
        ends = depth in stands.depths if match.group() == "\n" else 0 <= depth <= deepest
        if ends:
            return _without_gap(text[: match.start()], suffix)
    return text


def _without_gap(text: str, suffix: str) -> str:
    """Without the white space that stands before the closer already."""
    if suffix.startswith("\n"):
        return text.rstrip(" \t\n")
    return text.removesuffix(" ") if suffix.startswith(" ") else text


def _closers(text: str, start: int, end: int, stack: list[str], *, whole: bool) -> Iterator[tuple[re.Match[str], int]]:
    """Follow `text`, keeping `stack`; gives each closer, and the place in the stack of what it closes (-1: of nothing).

    A line's end closes the quotes that are good for one line only; what they enclose stays open, as they were none.
    """
    for match in _TOKEN.finditer(text, start, end):
        found = match.group()
        if found.startswith("\\"):
            continue
        quote = next((depth for depth in _inside_out(stack) if stack[depth] in _QUOTES), -1)
        opens = _opens(match, in_string=quote >= 0)
        if opens:
            stack.append(opens)
            continue
        if found == "\n":
            if quote >= 0 and stack[quote] in _ONE_LINE:
                yield match, quote
                stack[quote] = ""
            continue
        if found in _QUOTES:
            depth = quote if quote >= 0 and stack[quote] == found else None
        else:
            depth = _depth(f"</{match['end']}>" if match["end"] else found, stack, text, match.end(), whole=whole)
        if depth is not None:
            yield match, depth
            if depth >= 0:
                del stack[depth:]


def _opens(match: re.Match[str], *, in_string: bool) -> str:
    """The closer of what a token opens; empty: it opens nothing."""
    found = match.group()
    if match["tag"]:
        return f"</{match['tag']}>"
    if found in _QUOTES:
        return "" if in_string or (found == "'" and _is_apostrophe(match.string, match.start())) else found
    return _CLOSER.get(found, "")


def _depth(closer: str, stack: list[str], text: str, at: int, *, whole: bool) -> int:
    """What `closer` closes: nothing outside of the string it stands in, unless that never ends and so is none."""
    for depth in _inside_out(stack):
        if stack[depth] == closer:
            return depth
        if stack[depth] in _QUOTES and not _never_comes(stack[depth], text, at, whole=whole):
            return -1
    return -1


def _inside_out(stack: list[str]) -> range:
    return range(len(stack) - 1, max(-1, len(stack) - 1 - _DEEP), -1)


def _never_comes(quote: str, text: str, at: int, *, whole: bool) -> bool:
    end = text.find("\n", at) if quote in _ONE_LINE else -1
    if end < 0:
        return whole and quote not in text[at:]
    return text.find(quote, at, end) < 0


def _is_apostrophe(text: str, at: int) -> bool:
    """`don't`, but neither `'a'` nor `f'a'`."""
    return at > 1 and _is_word(text[at - 2 : at])


def _is_word(text: str) -> bool:
    return all(char.isalnum() or char == "_" for char in text)
