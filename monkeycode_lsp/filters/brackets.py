"""Brackets and quotes, without a parser: are they closed, and by whom?

Rough on purpose: strings and comments are skipped as most languages write them.  It is only ever
used to compare two versions of the same text, so that what it misreads in both does no harm.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from monkeycode_lsp.context import comments
from monkeycode_lsp.domain import Window

_OPENER = {")": "(", "]": "[", "}": "{"}
_STRINGS = (
    r'"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\'',
    r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|`(?:\\.|[^`\\\n])*`',
)
_LOOSE = frozenset({"markdown", "plaintext", "latex", "tex", "restructuredtext", "git-commit", "shellscript", "bash", "sh", "zsh", "fish"})
"""Languages that use closing brackets by themselves: `1) first`, `case a)`."""
_DOCSTRINGS = ('"""', "'''")
_MOST = 4


def _scanner(mark: str) -> re.Pattern[str]:
    skipped = list(_STRINGS)
    if mark == "//":
        skipped.append(r"/\*.*?\*/")
    if mark == "#":
        skipped.append(r"(?<![$\w{])#[^\n]*")
    elif mark:
        skipped.append(re.escape(mark) + r"[^\n]*")
    return re.compile(rf"{'|'.join(skipped)}|(?P<bracket>[()\[\]{{}}])|(?P<quote>\"\"\"|'''|[\"`]|(?<!\w\w)')", re.DOTALL)


_SCANNERS = {mark: _scanner(mark) for mark in ("#", "//", "--", ";", "%", "")}


class Balance(msgspec.Struct, frozen=True):
    """What a text leaves open."""

    extra: tuple[int, ...]
    """Offsets of closing brackets that close nothing in the text."""
    unclosed: str
    """Opening brackets that nothing closes, outermost first."""
    n_quotes: int
    """Quotes that stand alone on their line."""

    @property
    def n_faults(self) -> int:
        return len(self.extra) + len(self.unclosed) + self.n_quotes


_NOTHING = Balance((), "", 0)


def balance(text: str, language: str, *, curly: bool = True, head: int = 0) -> Balance:
    """Scan `text`; without `curly`, braces are ordinary characters.  What stands before `head` may be known from a scan before."""
    known = _head(text[:head], language, curly=curly) if head else _NOTHING
    stack, extra, n_quotes = list(known.unclosed), list(known.extra), known.n_quotes
    for match in _SCANNERS[comments.marker(language)].finditer(text, 0 if known is _NOTHING else head):
        if match.lastgroup == "quote":
            n_quotes += 1
        elif match.lastgroup == "bracket":
            bracket = match.group()
            if bracket in "{}" and not curly:
                continue
            if bracket not in _OPENER:
                stack.append(bracket)
            elif stack and stack[-1] == _OPENER[bracket]:
                stack.pop()
            else:
                extra.append(match.start())
    return Balance(tuple(extra), "".join(stack), n_quotes)


@lru_cache(maxsize=4)
def _head(text: str, language: str, *, curly: bool) -> Balance:
    """Whole lines that several texts begin with.  Nothing, if a string or a comment may be open at their end."""
    found = balance(text, language, curly=curly)
    is_open = (
        found.n_quotes or any(text.count(mark) % 2 for mark in _DOCSTRINGS) or text.endswith("\\\n") or text.rfind("/*") > text.rfind("*/")
    )
    return _NOTHING if is_open else found


def n_faults(text: str, window: Window) -> int:
    """How much is wrong with the document around the cursor if `text` is put there."""
    # Where the document's start or end is missing, so are braces, and the count would blame others.
    is_all = window.whole_prefix and window.whole_suffix
    head = window.prefix.rfind("\n") + 1
    return balance(window.prefix + text + window.suffix, window.language, curly=is_all, head=head).n_faults


def extra_closer(text: str, window: Window, *, whole: bool) -> int | None:
    """Where `text` closes what it should leave to the text after the cursor; None: nowhere.

    While the text is not `whole`, a closer may be followed by the opener that makes it good:
    only one on the cursor's own line, before the same closer, is sure.
    """
    ended = _comment_end(text, window)
    if ended is not None:
        return ended
    rest = window.line_after.strip()
    if (window.language in _LOOSE or not whole) and not rest:
        return None
    for offset in balance(text, window.language).extra[:_MOST]:
        if not whole and ("\n" in text[:offset] or not rest.startswith(text[offset])):
            return None
        # What follows may be half a statement: first the closer itself is judged, then the whole.
        n_without = n_faults(text[:offset], window)
        if _in_open_string(text[:offset], window.language) or n_without >= n_faults(text[: offset + 1], window):
            continue
        if not whole or n_without < n_faults(text, window):
            return offset
    return None


def _comment_end(text: str, window: Window) -> int | None:
    """Where `text` ends the comment or the docstring that the text after the cursor ends; None: nowhere."""
    _, closer = comments.block(window.language)
    if closer and closer in text and comments.ends_below(window):
        return text.index(closer)
    for quotes in _DOCSTRINGS if window.language == "python" and window.whole_prefix and window.whole_suffix else ():
        if quotes in text and window.prefix.count(quotes) % 2 and window.suffix.count(quotes) % 2:
            return text.index(quotes)
    return None


def _in_open_string(text: str, language: str) -> bool:
    return balance(text[text.rfind("\n") + 1 :], language).n_quotes > 0


def without_extra_closers(text: str, window: Window) -> str:
    """`"hi")` before `)` → `"hi"`."""
    offset = extra_closer(text, window, whole=True)
    return text if offset is None else text[:offset]
