"""The end of one statement: of its line, of the line that closes its brackets, or of the line that finishes what is joined."""

from __future__ import annotations

import re

from monkeycode_lsp.context import comments
from monkeycode_lsp.domain import Window
from monkeycode_lsp.filters import brackets, following
from monkeycode_lsp.stops.amount import MOST_BLANK, Plan
from monkeycode_lsp.stops.values import Line, Stop, lines

_NO_CODE = frozenset(
    {"markdown", "plaintext", "latex", "tex", "restructuredtext", "asciidoc", "git-commit", "html", "xml", "svg", "yaml", "toml"}
    | {"ini", "properties", "dotenv", "makefile", "csv"}
)
"""Languages in which an operator at the end of a line asks for nothing."""
_CHAINED = frozenset(
    {"javascript", "javascriptreact", "typescript", "typescriptreact", "java", "csharp", "kotlin", "swift", "scala", "rust", "dart", "php"}
    | {"c", "cpp"}
)
"""Languages in which a line may begin with what goes on with the one above, outside of brackets too."""
_JOINT = re.compile(r"\s*(?:,|&&?|\|\|?|[+%^=-]|[-+*/|&]=|==|\.|\\|\?\?|and|or)\s*")
"""An answer that says no more than this has only begun."""
_JOINED_BELOW = re.compile(r"(?:&&|\|\||\\|(?<!\+)\+|(?<!-)-|[^>]=|\?\?|[^|]\||<<|(?<![\d.])\.)\s*\Z")
_WORDS_BELOW = re.compile(r"\b(?:and|or|not)\s*\Z")
_WORDED = frozenset({"python", "sql", "lua", "ruby"})
_ENDED = (";", "{", "}", ",", ":")
_JOINS_ABOVE = re.compile(r"\??\.[A-Za-z_]|&&|\|\||\?\?|[+?:]\s|->|<<")
_MAY_JOIN = re.compile(r"\??\.?|[&|:+<-]")
_CLOSER = re.compile(r"\s*[\])}]")
_NO_TRAILING_COMMA = frozenset({"json"})


def end(text: str, window: Window, plan: Plan) -> Stop | None:
    """Where the statement ends; None: it goes on."""
    n = 0
    is_before_text = bool(window.line_after.strip())
    for line in lines(text):
        if line.is_blank and not n:
            if line.is_whole and (is_before_text or text.count("\n", 0, line.end) >= MOST_BLANK):
                return Stop(0, "an empty line")
            continue
        if not line.is_whole:
            return None
        said = text[: line.end]
        if not n and _is_joint(said, window):
            continue
        n += 1
        goes_on = not line.is_blank and n < plan.max_lines and _goes_on(text, line, window)
        if goes_on is None:
            return None
        if not goes_on:
            # A new line before existing text takes its line end along.
            is_own = is_before_text and not window.line_before.strip()
            return Stop(_without_comma(said, window) if not is_own else line.end + 1, "the end of the line")
    return None


def _is_joint(said: str, window: Window) -> bool:
    """Whether nothing but a comma or an operator has been said, so that the next line is what is wanted."""
    return window.language not in _NO_CODE and _JOINT.fullmatch(said) is not None and comments.inside(window) == "code"


def _goes_on(text: str, line: Line, window: Window) -> bool | None:
    """Whether the statement goes on below `line`; None: the next line has to come first."""
    said = text[: line.end]
    if brackets.is_open(said, window.language):
        return True
    if window.language in _NO_CODE or _has_comment(line.text, window) or comments.inside(window) != "code":
        return False
    if _JOINED_BELOW.search(line.text) or (window.language in _WORDED and _WORDS_BELOW.search(line.text)):
        return True
    if line.text.rstrip().endswith(_ENDED):
        return line.text.rstrip().endswith(",") and _lacks_closer(said, window)
    return _joins_above(text[line.end + 1 :]) if window.language in _CHAINED else False


def _has_comment(line: str, window: Window) -> bool:
    mark = comments.marker(window.language)
    return bool(mark) and mark in line


def _lacks_closer(said: str, window: Window) -> bool:
    """Whether a bracket of the cursor's line is still open that nothing below closes."""
    opened = brackets.balance(window.line_before + said, window.language, curly=False).unclosed
    closers = "".join({"(": ")", "[": "]"}[bracket] for bracket in reversed(opened))
    return bool(closers) and brackets.n_faults(said + closers, window) < brackets.n_faults(said, window)


def _joins_above(below: str) -> bool | None:
    """Whether the next line begins with what goes on with the one above; None: too little of it is there."""
    begun = below.lstrip()
    if "\n" in below[: len(below) - len(begun)]:
        return False
    if _JOINS_ABOVE.match(begun):
        return True
    return None if _MAY_JOIN.fullmatch(begun) else False


def _without_comma(said: str, window: Window) -> int:
    """Where `said` ends without the comma that may not stand before the closing bracket below."""
    ended = said.rstrip()
    if window.language not in _NO_TRAILING_COMMA or not ended.endswith(",") or not ended[:-1].strip():
        return len(said)
    below = following.ahead(window)
    return len(ended) - 1 if below and not window.line_after.strip() and _CLOSER.match(below[0]) else len(said)
