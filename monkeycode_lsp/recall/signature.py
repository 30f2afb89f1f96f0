"""What "the same place" means (pure).

Two places are the same when the language and the tokens around the cursor are, in the same scope; the
scope holds the workspace, the model and every setting that could change the answer.  White space,
blank lines, comments and the depth of indentation count only where they mean something: `grammar` says
where.  A comment that leads up to the cursor tells the model what to write, so it always counts.
A wrong reuse is worse than a miss: what cannot be told counts.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import msgspec

from monkeycode_lsp.domain import Window
from monkeycode_lsp.recall.grammar import Ends, Grammar, grammar
from monkeycode_lsp.recall.lexer import BLANK, COMMENT, OPERATOR, Lexed, Open, beginning, lex, over_line_end, width

N_BEFORE = 256
"""Tokens before the cursor that must be the same."""
N_AFTER = 64
_MOST_BEFORE = 4_000
"""Characters that are read at most: the work has a bound whatever the window."""
_MOST_AFTER = 1_200

_START, _CUT, _LINE, _PARAGRAPH, _STATEMENT, _FRESH = "^", "~", "\n", "\n\n", "\n;", "\r"
_RESTRICTED = frozenset({"wreturn", "wbreak", "wcontinue", "wthrow", "wyield"})
"""Words after which a line end ends the statement whatever follows."""


class Place(msgspec.Struct, frozen=True):
    """One place, whatever the scope."""

    digest: bytes
    """16 bytes that are equal for the same place only."""
    indent: str
    """White space that the cursor's line begins with: what is remembered elsewhere is indented like it."""


def place(window: Window) -> Place:
    """Where the cursor stands."""
    line = window.line_before
    before = _before(window)
    parts = (window.language, _suffix(window.path), *before.tokens, *_at_cursor(window), *_after(window, before))
    digest = hashlib.blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=16)
    return Place(digest.digest(), line[: len(line) - len(line.lstrip(" \t"))])


def key(scope: str, place: Place) -> bytes:
    """16 bytes that are equal for the same place in the same scope only."""
    digest = hashlib.blake2b(scope.encode("utf-8", "surrogatepass"), digest_size=16)
    digest.update(place.digest)
    return digest.digest()


class _Line(NamedTuple):
    """A line that counts."""

    tokens: tuple[str, ...]
    width: int
    """Columns of white space that it begins with."""
    inside: bool
    """Whether it begins inside a string or comment, or is only a comment: its indentation is no layout."""


class _Before(NamedTuple):
    """What stands before the cursor."""

    tokens: list[str]
    open: Open | None
    indentations: list[int]
    """Those of the lines above that are still open."""


def _suffix(path: str) -> str:
    name = path[path.rfind("/") + 1 :]
    return name[name.rfind(".") :].lower() if "." in name else ""


def _before(window: Window) -> _Before:
    language, known = window.language, grammar(window.language)
    text, whole = window.prefix[-_MOST_BEFORE:], window.whole_prefix and len(window.prefix) <= _MOST_BEFORE
    *above, last = text.split("\n")
    opened = None if whole else beginning(language, text)
    lexed: list[tuple[Open | None, Lexed]] = []
    for line in above:
        read = lex(language, opened, line)
        lexed.append((opened, read))
        opened = over_line_end(read, line)
    cursor = lex(language, opened, last)
    lines, all_taken = _leading_up(known, above, lexed, len(cursor.tokens))
    tokens = [_START if whole else _CUT] if all_taken else []
    stack = _laid_out(known, lines, tokens)
    if not last.strip():
        # An answer directly below a block often begins with an empty line; the one below an empty line does not.
        tokens += (_PARAGRAPH if above and not above[-1].strip() else _FRESH, *_level(stack, width(last), push=False))
    else:
        _between(known, tokens, cursor.tokens[:1])
        tokens += _level(stack, width(last)) if known.indent and opened is None else ()
    tokens += cursor.tokens
    return _Before(tokens[-N_BEFORE:], cursor.open, stack)


def _leading_up(known: Grammar, above: list[str], lexed: list[tuple[Open | None, Lexed]], n_tokens: int) -> tuple[list[_Line], bool]:
    """The lines above the cursor's that count, first to last; and whether they are all there are."""
    lines: list[_Line] = []
    leads = True
    for at in range(len(above) - 1, -1, -1):
        if n_tokens > N_BEFORE:
            lines.reverse()
            return lines, False
        opened, (tokens, _) = lexed[at]
        if not tokens:
            if known.blank_lines and opened is None and not (lines and lines[-1].tokens == (_PARAGRAPH,)):
                lines.append(_Line((_PARAGRAPH,), 0, inside=True))
            continue
        counted = _counted(tokens, from_end=leads)
        leads = leads and all(token[0] == COMMENT for token in tokens)
        if counted:
            n_tokens += len(counted)
            lines.append(_Line(counted, width(above[at]), inside=opened is not None or counted[0][0] == COMMENT))
    lines.reverse()
    return lines, n_tokens <= N_BEFORE


def _counted(tokens: tuple[str, ...], *, from_end: bool) -> tuple[str, ...]:
    """Without comments, but `from_end` with those behind the last token of code."""
    if not any(token[0] == COMMENT for token in tokens):
        return tokens
    n_kept = len(tokens)
    if from_end:
        while n_kept and tokens[n_kept - 1][0] in {COMMENT, BLANK}:
            n_kept -= 1
    kept = [token for token in tokens[:n_kept] if token[0] != COMMENT]
    while kept and kept[-1] == BLANK:
        kept.pop()
    return (*kept, *(token for token in tokens[n_kept:] if token[0] == COMMENT)) if from_end else tuple(kept)


def _laid_out(known: Grammar, lines: list[_Line], tokens: list[str]) -> list[int]:
    """Append the lines' tokens with what their ends and indentation mean; the indentations that are open at the end."""
    stack: list[int] = []
    for line in lines:
        _between(known, tokens, line.tokens[:1])
        if not line.inside:
            level = _level(stack, line.width)
            if known.indent:
                tokens += level
        tokens += line.tokens
    return stack


def _between(known: Grammar, tokens: list[str], following: tuple[str, ...]) -> None:
    """Append what the line end between `tokens` and the next line means."""
    if not tokens or tokens[-1] in {_START, _CUT}:
        return
    if known.ends is Ends.LINE:
        tokens.append(_LINE)
    elif known.ends is Ends.BLANK:
        tokens.append(BLANK)
    elif known.ends is Ends.STATEMENT and _ends_statement(tokens[-1], following):
        tokens.append(_STATEMENT)


def _ends_statement(last: str, following: tuple[str, ...]) -> bool:
    if last in _RESTRICTED:
        return True
    if last[0] == OPERATOR and last[1:] not in {")", "]", "}"}:
        return False
    return bool(following) and (following[0][0] != OPERATOR or following[0][1:] in {"(", "["})


def _level(stack: list[int], width: int, *, push: bool = True) -> tuple[str, ...]:
    """Where `width` stands among the indentations of the lines above: deeper, the same, or how many levels out."""
    n_out = 0
    depth = len(stack)
    while depth and stack[depth - 1] > width:
        depth -= 1
        n_out += 1
    known = depth > 0 and stack[depth - 1] == width
    first = not stack
    if push:
        del stack[depth:]
        if not known:
            stack.append(width)
    if known or first:
        return ("<",) * n_out
    return ("<",) * n_out + ((">",) if n_out == 0 else ("?",))


def _at_cursor(window: Window) -> tuple[str, str]:
    """White space that touches the cursor on either side, and whether the line ends there.

    An answer at a word's end begins with a blank, so this counts everywhere; how wide the gap is counts
    only where text can be laid out in columns.
    """
    before, after = window.line_before, window.line_after
    left = before[len(before.rstrip()) :] if before.strip() else ""
    right = after[: len(after) - len(after.lstrip())] if after.strip() else _LINE
    if grammar(window.language).blank_lines:
        return left, right
    return (" " if left else ""), (" " if right and right != _LINE else right)


def _after(window: Window, before: _Before) -> list[str]:
    """The first tokens after the cursor."""
    language, known = window.language, grammar(window.language)
    text, whole = window.suffix[:_MOST_AFTER], window.whole_suffix and len(window.suffix) <= _MOST_AFTER
    tokens: list[str] = []
    opened, stack = before.open, before.indentations
    paragraph = False
    for n, line in enumerate(text.split("\n")):
        if len(tokens) > N_AFTER:
            return tokens[:N_AFTER]
        carried, read = opened, lex(language, opened, line)
        opened = over_line_end(read, line)
        counted = read.tokens if n == 0 or (carried and carried.kind == COMMENT) else _counted(read.tokens, from_end=False)
        if not counted:
            paragraph = known.blank_lines and n > 0
            continue
        if n > 0:
            if paragraph:
                tokens.append(_PARAGRAPH)
            _between(known, tokens, counted[:1])
            tokens += _level(stack, width(line)) if known.indent and carried is None else ()
        paragraph = False
        tokens += counted
    return tokens[:N_AFTER] if len(tokens) > N_AFTER else [*tokens, _START if whole else _CUT]
