"""Secrets that one line alone does not show: a value below its name, and the body of a private key without its first and last line (pure).

Every look is at a bounded piece of a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

Span = tuple[int, int]

_WORD = (
    "pass(?:word|wd|phrase|wort)|pwd|secret|token|credential|"
    "(?:api|access|auth|private|signing|encryption|client|license|account|master)[_-]?key"
)
_UNFINISHED = re.compile(
    rf"""({_WORD})[\w-]{{0,24}}+\\{{0,3}}["'`]?\]?"""
    r"""(?:(?:[ \t]{0,4}:[ \t]{0,2}|[ \t]{1,4})[\w.,<>\[\]|&?*][\w.,<>\[\]|&?* \t]{0,40}+)?"""
    r"""[ \t]{0,8}(?:=>|:=|=|:)[ \t]{0,4}[(\[{]?[ \t]{0,4}\\?\Z""",
    re.IGNORECASE,
)
_NAMED = re.compile(
    rf"""\b(?:name|key|id)["']?[ \t]{{0,2}}[:=>][ \t]{{0,2}}["']?[\w.-]{{0,32}}?({_WORD})[\w.-]{{0,24}}["']?(?:</key>)?[ \t]{{0,4}},?\Z""",
    re.IGNORECASE,
)
_HINTS = ("key", "token", "pass", "secret", "credential", "pwd")
_TAIL = 120
_MOST_VALUE = 5_000
_BEFORE_VALUE = re.compile(r"""[ \t]*(?:<string>|-?[ \t]*["']?value["']?[ \t]{0,4}[:=][ \t]{0,4})?""", re.IGNORECASE)
_GOES_ON = re.compile(r"""["'`][ \t]{0,4}[+.]?[ \t]{0,4}\\?[ \t]{0,4}\Z""")
_PIECE = re.compile(r"""[ \t]*[+.]?[ \t]*(?P<q>["'`])(?P<secret>[^\s"'`\\]{8,400}+)(?P=q)""")

_LEAST, _MOST = 60, 200
"""Characters of a line that can be one of a key's body."""
_BODY = re.compile(
    r"""[ \t]*(?:(?:#|//|\*|;|>|-|\+)[ \t]*)?["'`]?([A-Za-z0-9+/]{60,76}={0,2})(?:\\r)?(?:\\n)?["'`]?[ \t]*[+,.)\\;]{0,3}[ \t]*\Z"""
)
_PART = re.compile(
    r"""[ \t]*(?:(?:#|//|\*|;|>|-|\+)[ \t]*)?["'`]?([A-Za-z0-9+/]{16,76}={0,2})(?:\\r)?(?:\\n)?["'`]?[ \t]*[+,.)\\;]{0,3}[ \t]*\Z"""
)
_INLINE = re.compile(
    r"""(?<![A-Za-z0-9+/])(?:(?:\A[A-Za-z0-9+/]{8,59})?\\n)?(?:[A-Za-z0-9+/]{60,76}={0,2}(?:\\r)?\\n){2,400}(?:[A-Za-z0-9+/]{8,76}={0,2})?"""
)


def awaits(line: str) -> str:
    """The word of a secret's name at the line's end, whose value is to come below; empty: there is none."""
    tail = line[-_TAIL:].rstrip()
    low = tail.lower()
    if not any(hint in low for hint in _HINTS):
        return ""
    match = (_UNFINISHED if tail[-1] in "=:([{\\" else _NAMED).search(tail)
    return match[1] if match is not None else ""


def value(line: str) -> Span:
    """Where in the line the value is whose name stands above."""
    match = _BEFORE_VALUE.match(line)
    begin = match.end() if match is not None else 0
    end = line.find("</", begin)
    return begin, min(end if end >= 0 else len(line), begin + _MOST_VALUE)


def goes_on(line: str, end: int) -> bool:
    """Whether the string literal with a secret that ends there may have more pieces on the next line."""
    return _GOES_ON.match(line, end) is not None


def piece(line: str) -> Span | None:
    """The string literal that a line begins with."""
    match = _PIECE.match(line)
    return match.span("secret") if match is not None else None


def body(line: str) -> Span | None:
    """What may be one line of a private key's body: letters of both cases and digits, as long as tools break it."""
    if not _LEAST <= len(line) <= _MOST:
        return None
    match = _BODY.match(line)
    return match.span(1) if match is not None and _is_mixed(match[1]) else None


def inline(line: str) -> Iterator[Span]:
    """The bodies that stand in one line, with written-out line ends."""
    for match in _INLINE.finditer(line) if "\\n" in line else ():
        if _is_mixed(match[0][:160]):
            yield match.span()


def blocks(lines: Sequence[str], bodies: Sequence[Span | None]) -> Iterator[tuple[int, Span]]:
    """The lines of two or more such bodies one after the other, by their numbers, with the shorter last one.

    A text may begin in the middle of a line of a key.
    """
    for at, span in enumerate(bodies):
        if span is None:
            continue
        before, after = at > 0 and bodies[at - 1] is not None, at + 1 < len(bodies) and bodies[at + 1] is not None
        if not before and not after:
            continue
        yield at, span
        if not before and at == 1 and (part := _PART.match(lines[0])) is not None:
            yield 0, part.span(1)
        if not after and at + 1 < len(lines) and (part := _PART.match(lines[at + 1])) is not None:
            yield at + 1, part.span(1)


def _is_mixed(text: str) -> bool:
    return any(map(str.isdigit, text)) and any(map(str.islower, text)) and any(map(str.isupper, text))
