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
from monkeycode_lsp.syntax import faults

_OPENER = {")": "(", "]": "[", "}": "{"}
_STRINGS = (
    r'"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\'',
    r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|`(?:\\.|[^`\\\n])*`',
)
_LOOSE = frozenset({"markdown", "plaintext", "latex", "tex", "restructuredtext", "git-commit", "shellscript", "bash", "sh", "zsh", "fish"})
"""Languages that use closing brackets by themselves: `1) first`, `case a)`."""
_BRACED = frozenset({"go", "c", "cpp", "java", "javascript", "typescript", "javascriptreact", "typescriptreact", "rust", "csharp", "php"})
_MOST_PARSED = 12_000
_ROUND = frozenset("()[]")
_DOCSTRINGS = ('"""', "'''")
_MOST = 4
_LINES_TO_COMMENT = 5


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
    free: str = ""
    """Those of the extra ones that something opened before the text would make good."""
    has_quotes: bool = False
    """Whether one of the quotes that stand alone may go on over lines."""

    @property
    def n_faults(self) -> int:
        return len(self.extra) + len(self.unclosed) + self.n_quotes


def balance(text: str, language: str, *, curly: bool = True, opened: str = "") -> Balance:
    """Scan `text`, before which `opened` is open; without `curly`, braces are ordinary characters."""
    stack, extra, free, n_quotes, has_quotes = list(opened), [], [], 0, False
    for match in _SCANNERS[comments.marker(language)].finditer(text):
        if match.lastgroup == "quote":
            n_quotes += 1
            has_quotes = has_quotes or match.group() in _DOCSTRINGS
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
                if not stack:
                    free.append(bracket)
    return Balance(tuple(extra), "".join(stack), n_quotes, "".join(free), has_quotes)


@lru_cache(maxsize=8)
def _piece(text: str, language: str, *, curly: bool) -> Balance | None:
    """Lines that stand around several answers; None, if a string or a comment may be open at their end."""
    found = balance(text, language, curly=curly)
    return None if _goes_on(text, found) else found


def _goes_on(text: str, found: Balance) -> bool:
    is_odd = found.n_quotes > 0 or any(text.count(mark) % 2 for mark in _DOCSTRINGS)
    return is_odd or text.endswith(("\\", "\\\n")) or text.rfind("/*") > text.rfind("*/")


def n_faults(text: str, window: Window) -> int:
    """How much is wrong with the document around the cursor if `text` is put there.

    The lines above and below are known from answers before; only what stands between is scanned.
    """
    # Where the document's start or end is missing, so are braces, and the count would blame others.
    is_all = window.whole_prefix and window.whole_suffix
    head = window.prefix.rfind("\n") + 1
    tail = window.suffix.find("\n")
    tail = len(window.suffix) if tail < 0 else tail
    above = _piece(window.prefix[:head], window.language, curly=is_all)
    below = balance_below(window.suffix[tail:], window.language, curly=is_all)
    middle = window.prefix[head:] + text + window.suffix[:tail]
    if above is None:
        return balance(window.prefix + text + window.suffix, window.language, curly=is_all).n_faults
    found = balance(middle, window.language, curly=is_all, opened=above.unclosed)
    if found.has_quotes or _is_unfinished(middle):
        return balance(window.prefix + text + window.suffix, window.language, curly=is_all).n_faults
    return len(above.extra) + above.n_quotes + len(found.extra) + found.n_quotes + _joined(found.unclosed, below)


def _is_unfinished(text: str) -> bool:
    """Whether what is skipped may reach into the next line."""
    return text.endswith("\\") or text.rfind("/*") > text.rfind("*/") or any(mark in text for mark in _DOCSTRINGS)


@lru_cache(maxsize=8)
def balance_below(text: str, language: str, *, curly: bool) -> Balance:
    """Of the lines below the cursor's."""
    return balance(text, language, curly=curly)


def _joined(opened: str, below: Balance) -> int:
    """The faults of the lines below, if `opened` is open above them; what they do not close is one too."""
    stack, n_extra = list(opened), len(below.extra) - len(below.free)
    for bracket in below.free:
        if stack and stack[-1] == _OPENER[bracket]:
            stack.pop()
        else:
            n_extra += 1
    return n_extra + len(stack) + len(below.unclosed) + below.n_quotes


def is_open(text: str, language: str) -> bool:
    """Whether a round or square bracket of `text` is still open: the next lines may be aligned at will."""
    return bool(balance(text, language, curly=False).unclosed)


def open_at_line_ends(text: str, language: str) -> list[bool]:
    """The same for each line of `text`, as if it ended there."""
    found: list[bool] = []
    depth, ended = 0, text.find("\n")
    for match in _SCANNERS[comments.marker(language)].finditer(text):
        while 0 <= ended < match.start():
            found.append(depth > 0)
            ended = text.find("\n", ended + 1)
        bracket = match.group() if match.lastgroup == "bracket" else ""
        if bracket in _ROUND:
            depth = max(0, depth + (1 if bracket not in _OPENER else -1))
    return found + [depth > 0] * (text.count("\n", ended) if ended >= 0 else 0)


def extra_closer(text: str, window: Window, *, whole: bool) -> int | None:
    """Where `text` closes what it should leave to the text after the cursor; None: nowhere.

    While the text is not `whole`, a closer may be followed by the opener that makes it good:
    only one on the cursor's own line, before the same closer, is sure.
    """
    ended = _comment_end(text, window, whole=whole)
    if ended is not None:
        return ended
    rest = window.line_after.strip()
    if (window.language in _LOOSE or not whole) and not rest:
        return None
    n_all: int | None = None
    for offset in balance(text, window.language).extra[:_MOST]:
        if not whole and ("\n" in text[:offset] or not rest.startswith(text[offset])):
            return None
        if whole and text[offset] == "}" and _is_beside(text, offset, window):
            return len(text[:offset].rstrip())
        # What follows may be half a statement: first the closer itself is judged, then the whole.
        # What it closes may stand above the window.
        is_above = not rest and not window.whole_prefix and _OPENER[text[offset]] not in _opened_above(window)
        if is_above or (whole and _is_needed(text, offset, window)):
            continue
        n_without = n_faults(text[:offset], window)
        if n_without >= n_faults(text[: offset + 1], window) or _in_open_string(text[:offset], window.language):
            continue
        if whole:
            n_all = n_faults(text, window) if n_all is None else n_all
        if n_all is None or n_without < n_all:
            return None if whole and _is_understood(text, offset, window) else offset
    return None


def _is_needed(text: str, offset: int, window: Window) -> bool:
    """Whether the closer belongs to what was opened on the cursor's line, and nothing after the cursor closes that.

    What the lines around say goes before the count: of a document with faults, or one that begins above, it blames others.
    """
    closer, rest = text[offset], window.line_after.strip()
    opened = balance(window.line_before + text[:offset], window.language).unclosed
    below = next((line for line in window.suffix.split("\n", _MOST + 1)[1:] if line.strip()), "")
    if not opened.endswith(_OPENER[closer]) or "\n" in text[:offset] or not below or balance(rest, window.language).extra:
        return False
    is_inside = _width(below) > _width(window.line_before) and not rest.endswith((":", "{"))
    return not is_inside and not below.lstrip().startswith(closer) and (not rest or rest.endswith((":", "{")))


def _opened_above(window: Window) -> str:
    head = window.prefix.rfind("\n") + 1
    above = _piece(window.prefix[:head], window.language, curly=True)
    return balance(window.prefix[head:], window.language, opened=above.unclosed).unclosed if above is not None else "([{"


def _is_understood(text: str, offset: int, window: Window) -> bool:
    """Whether the grammar, where one is at hand, has no fault to find with the closer: quotes and patterns mislead those who count."""
    if not window.whole_prefix or not window.whole_suffix or len(window.prefix) + len(window.suffix) > _MOST_PARSED:
        return False
    n_with = faults.count(window.prefix + text + window.suffix, window.language)
    if not n_with:
        return n_with == 0
    n_without = faults.count(window.prefix + text[:offset] + window.suffix, window.language) or 0
    return n_with < n_without


def _is_beside(text: str, offset: int, window: Window) -> bool:
    """Whether a brace stands behind a statement, `return config, nil }`, though the block goes on or is closed below.

    The braces of a document that is not whole cannot be counted.
    """
    if window.language not in _BRACED or (window.whole_prefix and window.whole_suffix) or text[offset + 1 :].strip():
        return False
    start = text.rfind("\n", 0, offset) + 1
    line = text[start:offset] if start else window.line_before + text[:offset]
    following = next((line for line in window.suffix.split("\n", _MOST + 1)[1:] if line.strip()), "")
    is_going_on = following.lstrip().startswith("}") or _width(following) >= _width(line)
    return bool(following) and is_going_on and any(char.isalnum() for char in line) and "{" not in line


def _width(line: str) -> int:
    return len(line) - len(line.lstrip())


def _comment_end(text: str, window: Window, *, whole: bool) -> int | None:
    """Where `text` ends the comment or the docstring that the text after the cursor ends; None: nowhere.

    It may begin another one, which that text ends then; while it is not `whole`, it has a few lines to do so.
    """
    opener, closer = comments.block(window.language)
    at = text.find(closer) if closer else -1
    if at >= 0 and text.rfind(opener) < text.rfind(closer) and comments.ends_below(window):
        return at if whole or _is_past(text, at, closer, window) else None
    for quotes in _DOCSTRINGS if window.language == "python" and window.whole_prefix and window.whole_suffix else ():
        at = text.find(quotes)
        if at >= 0 and text.count(quotes) % 2 and window.prefix.count(quotes) % 2 and window.suffix.count(quotes) % 2:
            return at if whole or _is_past(text, at, quotes, window) else None
    return None


def _is_past(text: str, at: int, closer: str, window: Window) -> bool:
    """Whether it is too late to begin another comment."""
    return closer in window.line_after or text.count("\n", at) > _LINES_TO_COMMENT


def _in_open_string(text: str, language: str) -> bool:
    return balance(text[text.rfind("\n") + 1 :], language).n_quotes > 0


def without_extra_closers(text: str, window: Window) -> str:
    """`"hi")` before `)` → `"hi"`."""
    offset = extra_closer(text, window, whole=True)
    return text if offset is None else text[:offset]
