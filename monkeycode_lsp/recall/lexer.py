"""The tokens of one line, whatever the language (pure).

A line's tokens follow from the language, the line and what was open at its beginning; so they are kept
for the next keystroke, and the text is never read as a whole.  `grammar` says what the languages do.
Work is linear in the line's length, and there is no text that cannot be read.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from monkeycode_lsp.recall.grammar import Grammar, Span, grammar, scanner

WORD, OPERATOR, STRING, COMMENT, BLANK = "w", "o", "s", "c", "b"
"""A token's first character says what it is; its text follows."""

_LONGEST_KEPT = 300
"""Characters of a line whose tokens are kept: a cache of long lines would be a cache of documents."""
_REGEX = re.compile(r"/(?:[^/\\\[]|\\.|\[(?:[^\]\\]|\\.){0,30}\]){1,80}/\w*")
_BEFORE_REGEX = frozenset({"return", "typeof", "case", "in", "of", "delete", "void", "throw", "if", "unless", "when", "and", "or", "not"})
_BLOCK_SCALAR = re.compile(r"(?:^|[:\-?]|\s)\s*[|>][-+\d]{0,2}\s*(?:#.*)?$")


class Open(NamedTuple):
    """What is open at a place: a comment or a string."""

    kind: str
    closer: str = ""
    escapes: bool = False
    nests: str = ""
    depth: int = 1
    goes_on: bool = True
    """Whether it can go on at the next line."""
    how: str = "span"
    """`span` ends with its closer, `heredoc` with a line that is its closer, `block` with a line that is indented less than `depth`."""


class Lexed(NamedTuple):
    """One line, or a part of one."""

    tokens: tuple[str, ...]
    open: Open | None
    """What is open at its end."""


def lex(language: str, opened: Open | None, line: str) -> Lexed:
    """The tokens of `line`, at whose beginning `opened` is open."""
    return _kept(language, opened, line) if len(line) <= _LONGEST_KEPT else _lex(language, opened, line)


def over_line_end(lexed: Lexed, line: str) -> Open | None:
    """What is still open at the beginning of the next line."""
    opened = lexed.open
    if opened is None or opened.goes_on or (opened.escapes and line.endswith("\\")):
        return opened
    return None


def width(line: str) -> int:
    """Columns of white space that `line` begins with."""
    return len(line[: len(line) - len(line.lstrip(" \t"))].expandtabs(8))


def beginning(language: str, text: str) -> Open | None:
    """What is probably open at the beginning of a text that was cut out of a document.

    It is given out as a string whatever it is: a comment that is none must not make its text meaningless.
    """
    for span in grammar(language).spans:
        if span.comment and len(span.closer) > 1 and "{" not in span.closer:
            close = text.find(span.closer)
            if close >= 0 and not re.search(span.opener, text[:close]):
                return Open(STRING, span.closer)
        elif span.opener in {'"""', "'''"} and _closes_first(text, span.opener):
            return Open(STRING, span.closer, escapes=True)
    return None


def _closes_first(text: str, mark: str) -> bool:
    """Whether the first triple quote ends a string that began before `text`."""
    at = text.find(mark)
    if at < 0:
        return False
    start = text.rfind("\n", 0, at) + 1
    before = text[start:at].strip().rstrip("rRbBuUfF").rstrip()
    end = text.find("\n", at)
    after = text[at + len(mark) : end if end >= 0 else len(text)].strip()
    if before:
        return before[-1] not in "=([{,:+%" and not before.endswith("return")
    above = text[:start].rstrip()
    return bool(above) and not above.endswith(":") and not after


@functools.lru_cache(maxsize=4096)
def _kept(language: str, opened: Open | None, line: str) -> Lexed:
    return _lex(language, opened, line)


def _lex(language: str, opened: Open | None, line: str) -> Lexed:
    known = grammar(language)
    tokens: list[str] = []
    at = 0
    if opened is not None:
        at, opened = _go_on(opened, line, 0, 0, tokens)
    elif known.directives and line.lstrip().startswith("#") and "/*" not in line:
        # The preprocessor's lines are exact up to the width of blanks: `F(x)` is not `F (x)` there.
        return Lexed((STRING + " ".join(line.split()), OPERATOR + "\n"), None)
    if opened is None and at < len(line):
        opened = _code(language, known, line, at, tokens)
    if tokens and tokens[-1] == BLANK:
        tokens.pop()
    return Lexed(tuple(tokens), opened)


def _code(language: str, known: Grammar, line: str, at: int, tokens: list[str]) -> Open | None:
    """Append the tokens from `at` on; what is open at the end."""
    match = scanner(language).match
    at_line_end: Open | None = None
    while (found := match(line, at)) is not None:
        kind = found.lastgroup or ""
        at, text = found.end(), found[kind]
        if kind == "word":
            tokens.append(WORD + text)
        elif kind == "blank":
            if tokens and tokens[-1] != BLANK:
                tokens.append(BLANK)
        elif kind == "operator":
            token = _slash(line, at - 1, tokens) if known.regex and text == "/" else OPERATOR + text
            at += len(token) - 1 - len(text)
            tokens.append(token)
        elif (opened := _opened(known, found, kind, tokens)) is None:
            tokens.append((OPERATOR if kind == "comment" else STRING) + text)
        elif opened.how == "heredoc":
            at_line_end = opened
            tokens.append(OPERATOR + text)
        else:
            at, still = _go_on(opened, line, found.start(kind), at, tokens)
            if still is not None:
                return still
    if known.block_scalars and _BLOCK_SCALAR.search(line[-200:]):
        return Open(STRING, how="block", depth=width(line) + 1)
    return at_line_end


def _opened(known: Grammar, found: re.Match[str], kind: str, tokens: list[str]) -> Open | None:
    """What a token opens, if it opens anything."""
    if kind == "quote":
        return Open(STRING, found[kind], escapes=True, goes_on=False)
    if kind == "comment" and (known.trailing or not tokens):
        return Open(COMMENT, goes_on=False)
    if kind == "heredoc":
        return Open(STRING, found["end"], how="heredoc")
    return _span(known.spans[int(kind[4:])], found) if kind.startswith("span") else None


def _span(span: Span, found: re.Match[str]) -> Open:
    inner = next((text for name, text in found.groupdict().items() if name.endswith(("level", "raw")) and text is not None), "")
    return Open(
        COMMENT if span.comment else STRING, span.closer.format(inner) if "{}" in span.closer else span.closer, span.escapes, span.nests
    )


def _slash(line: str, at: int, tokens: list[str]) -> str:
    """The regular expression that begins at `at`, if one can stand there; a slash otherwise."""
    last = next((token for token in reversed(tokens) if token != BLANK and token[0] != COMMENT), OPERATOR)
    if last[0] == STRING or last[1:] in {")", "]", "}"} or (last[0] == WORD and last[1:] not in _BEFORE_REGEX):
        return OPERATOR + "/"
    found = _REGEX.match(line, at)
    return STRING + found.group() if found else OPERATOR + "/"


def _go_on(opened: Open, line: str, start: int, at: int, tokens: list[str]) -> tuple[int, Open | None]:
    """Append what lies inside `opened` as one token that begins at `start`; where it ends, and what is open there."""
    end, still = _end(opened, line, at)
    text = line[start:end]
    if end < start or (opened.how == "block" and still is None):
        return start, None
    if opened.kind == COMMENT:
        # White space says nothing in a comment, nor does the blank before it.
        if tokens and tokens[-1] == BLANK:
            tokens.pop()
        text = " ".join(text.split())
        if text:
            tokens.append(COMMENT + text)
    else:
        tokens.append(STRING + text)
    return end, still


def _end(opened: Open, line: str, at: int) -> tuple[int, Open | None]:
    if opened.how == "heredoc":
        return len(line), None if line.strip().rstrip(";,)") == opened.closer else opened
    if opened.how == "block":
        return len(line), opened if not line.strip() or width(line) >= opened.depth else None
    if not opened.closer:
        return len(line), opened
    if opened.nests:
        return _nested_end(opened, line, at)
    while (found := line.find(opened.closer, at)) >= 0:
        if not opened.escapes or (found - len(line[at:found].rstrip("\\")) - at) % 2 == 0:
            return found + len(opened.closer), None
        at = found + 1
    return len(line), opened


def _nested_end(opened: Open, line: str, at: int) -> tuple[int, Open | None]:
    depth = opened.depth
    marks = re.compile(f"{re.escape(opened.nests)}|{re.escape(opened.closer)}")
    for found in marks.finditer(line, at):
        depth += 1 if found.group() == opened.nests else -1
        if depth == 0:
            return found.end(), None
    return len(line), opened._replace(depth=depth)
