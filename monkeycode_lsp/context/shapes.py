"""Where secrets stand in a text, by what secrets look like: the rules are data in `secret_shapes.toml` (pure).

One look finds the words that a secret could begin with; only there a rule is tried, and every rule looks at a bounded
piece.  So the time follows the length of the text, whatever it says.
"""

from __future__ import annotations

import itertools
import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from importlib import resources
from typing import Literal, NamedTuple

import msgspec

from monkeycode_lsp.context import spread
from monkeycode_lsp.context.spread import Span

Judged = Literal["", "random", "password", "address"]

_BLOCK = re.compile(r"-----(BEGIN|END) (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_BODY = re.compile(r"[A-Za-z0-9+/=]{16,}")
_STANDS_FOR = re.compile(
    r"\$\{|\{\{|\}\}|\$\(|%\(|%s|<|&lt;|\.\.\.|\*\*\*|xxxx|0000|example|change.?me|your|dummy|placeholder|redacted|secret$|passw(?:or)?d$",
    re.IGNORECASE,
)
"""In a text that only stands for a secret."""
_HOLE = re.compile(r"\{[\w.!:]{0,40}\}|\$\w")
_WORDS = re.compile(r"[\W_]+")
_WORD = re.compile(r"[A-Za-z]*+\d{0,4}|\d{1,10}|v?\d{1,3}[a-z]{0,3}")
_LEAST_BITS = 3.0
"""Of Shannon's entropy for each character of a random text; words of a language and names have less."""
_SHORT_LINE = 400
_JUDGED = 200
"""Characters of a long text that are looked at to judge it."""


class Shape(msgspec.Struct, frozen=True):
    """What one kind of secret looks like."""

    name: str
    begins: tuple[str, ...]
    pattern: str
    example: tuple[str, ...]
    """Its pieces."""
    any_case: bool = False
    judged: Judged = ""


@cache
def shipped() -> tuple[Shape, ...]:
    """The rules that come with the package.  The first call reads a small file."""
    text = resources.files("monkeycode_lsp.context").joinpath("secret_shapes.toml").read_text(encoding="utf-8")
    return tuple(msgspec.convert(tomllib.loads(text)["shape"], list[Shape]))


class _Look(NamedTuple):
    """What one line says."""

    spans: tuple[Span, ...]
    awaits: str
    """The word of a secret's name whose value is to come below."""
    body: Span | None
    """Of what may be one line of a key."""


def find(text: str) -> list[Span]:
    """Where secrets are, in order; none overlaps another, and none holds a line end."""
    lines = text.split("\n")
    looks = [_remembered(line) if len(line) <= _SHORT_LINE else _look(line) for line in lines]
    starts = list(itertools.accumulate((len(line) + 1 for line in lines), initial=0))
    spans = [(start + first, start + last) for look, start in zip(looks, starts, strict=False) for first, last in look.spans]
    more: list[Span] = []
    for at, (first, last) in itertools.chain(
        spread.blocks(lines, [look.body for look in looks]) if any(look.body for look in looks) else (), _below(lines, looks)
    ):
        more.append((starts[at] + first, starts[at] + last))
    if "PRIVATE KEY" in text:
        more += _blocks(text)
    return _merged([*spans, *more]) if more else spans


def around(before: str, after: str) -> list[Span]:
    """Where they are in a text with the cursor in it: one that is being typed ends there, whatever stands behind."""
    spans = find(before + after)
    start = before.rfind("\n") + 1
    typed = [(start + first, start + last) for first, last in _remembered(before[start:]).spans if start + last == len(before)]
    return _merged([*spans, *typed]) if typed else spans


def _below(lines: Sequence[str], looks: Sequence[_Look]) -> Iterator[tuple[int, Span]]:
    """Values that stand below their names, and the other pieces of one that is written in several."""
    goes_on = False
    for at in range(1, len(lines)):
        above, line = looks[at - 1], lines[at]
        goes_on = goes_on or (bool(above.spans) and spread.goes_on(lines[at - 1], above.spans[-1][1]))
        span = spread.piece(line) if goes_on else None
        if span is not None and _passes(line[slice(*span)], "random"):
            yield at, span
            goes_on = spread.goes_on(line, span[1])
            continue
        goes_on = False
        if above.awaits:
            begin, end = spread.value(line)
            virtual = f"{above.awaits}: "
            for first, last in _in_line(virtual + line[begin:end]):
                if first >= len(virtual):
                    yield at, (first - len(virtual) + begin, last - len(virtual) + begin)
                    goes_on = spread.goes_on(line, last - len(virtual) + begin)


def _look(line: str) -> _Look:
    return _Look((*_in_line(line), *spread.inline(line)), spread.awaits(line), spread.body(line))


def _in_line(line: str) -> tuple[Span, ...]:
    beginnings, rules = _compiled()
    spans: list[Span] = []
    end = 0
    for hit in beginnings.finditer(line):
        if hit.start() < end:
            continue
        for pattern, judged in rules[hit.group()]:
            match = pattern.match(line, hit.start())
            if match is not None and _passes(match["secret"] or match.group(), judged):
                spans.append(match.span("secret") if match["secret"] else match.span())
                end = spans[-1][1]
                break
    return tuple(spans)


_remembered = lru_cache(maxsize=8_192)(_look)
"""While the user types, one line differs from those that were looked through before."""


@cache
def _compiled() -> tuple[re.Pattern[str], dict[str, list[tuple[re.Pattern[str], Judged]]]]:
    rules: dict[str, list[tuple[re.Pattern[str], Judged]]] = {}
    for shape in shipped():
        whole = shape.pattern if "(?P<secret>" in shape.pattern else f"(?P<secret>{shape.pattern})"
        for begins in shape.begins:
            # What stands before the pattern's repetitions is the word that was found: it need not be matched again in any case.
            spellings = {begins, begins.upper(), begins.capitalize(), begins.title(), _camel(begins)} if shape.any_case else {begins}
            for spelling in spellings:
                pattern = re.compile(whole, re.IGNORECASE if shape.any_case else 0)
                rules.setdefault(spelling, []).append((pattern, shape.judged))
    # The longest word that stands there is found; the rules of those that it begins with count as well.
    every = {word: [rule for n in range(len(word), 0, -1) for rule in rules.get(word[:n], ())] for word in rules}
    return re.compile(_any_of(sorted(rules))), every


def _any_of(words: Sequence[str]) -> str:
    """A pattern for all of them that tries each letter once."""
    after: dict[str, list[str]] = {}
    for word in words:
        if word:
            after.setdefault(word[0], []).append(word[1:])
    branches = "|".join(re.escape(letter) + _any_of(rest) for letter, rest in after.items())
    return f"(?:{branches})" + ("?" if "" in words else "") if after else ""


def _camel(text: str) -> str:
    first, *rest = re.split("[_-]", text)
    return first + "".join(part.capitalize() for part in rest)


def _passes(value: str, judged: Judged) -> bool:
    if not judged:
        return True
    value = value[:_JUDGED]
    if _STANDS_FOR.search(value) or _HOLE.search(value):
        return False
    if judged == "address":
        return value.lower() not in {"pass", "pwd", "user", "token", "port"} and not value.isdigit()
    kinds = (any(char.isdigit() for char in value), any(char.isalpha() for char in value), any(not char.isalnum() for char in value))
    if judged == "password":
        return sum(kinds) > 1 and not _is_name(value)
    return kinds[0] and kinds[1] and not _is_words(value) and _bits(value) >= min(_LEAST_BITS, math.log2(len(value)) * 0.8)


def _is_name(value: str) -> bool:
    """Whether it is a name or a path in a program, and no password that somebody thought of."""
    return re.fullmatch(r"[./@#]?[A-Za-z]+(?:[\W_][A-Za-z]*)*", value) is not None


def _is_words(value: str) -> bool:
    return all(_WORD.fullmatch(part) for part in _WORDS.split(value))


def _bits(value: str) -> float:
    """Shannon's entropy for each character."""
    return -sum(n / len(value) * math.log2(n / len(value)) for n in Counter(value).values())


def _blocks(text: str) -> Iterator[Span]:
    """The bodies of private keys, line by line; one of them may have lost its beginning or its end."""
    at, inside = 0, False
    for mark in _BLOCK.finditer(text):
        if inside or mark[1] == "END":
            yield from (body.span() for body in _BODY.finditer(text, at, mark.start()))
        inside, at = mark[1] == "BEGIN", mark.end()
    if inside:
        yield from (body.span() for body in _BODY.finditer(text, at))


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
