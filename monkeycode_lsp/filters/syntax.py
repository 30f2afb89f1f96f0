"""The syntax guarantee: with the suggestion the document has no more parse errors than without it.

An answer that breaks it is cut to the longest piece that does not, or dropped.  Where no grammar is at
hand, or the grammar does not understand the code around (macros, another dialect), nothing is promised.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from functools import lru_cache

import msgspec

from monkeycode_lsp.context import comments
from monkeycode_lsp.context.surroundings import Surroundings
from monkeycode_lsp.domain import Window
from monkeycode_lsp.filters import brackets
from monkeycode_lsp.filters.indentation import n_columns
from monkeycode_lsp.syntax import faults
from monkeycode_lsp.syntax.faults import Ends

MOST_CUTS = 12
"""Pieces that are tried; each is one parse."""
MOST_PARSED = 30_000
"""Characters, all of them together: two milliseconds."""
_UNJUDGED = frozenset({"markdown", "plaintext", "html", "vue", "svelte", "shellscript", "bash"})
"""Where a fault says nothing of the text that is typed: prose, templates, here-documents."""
_HARD = frozenset({"c", "cpp", "objective-c", "objective-cpp", "cuda-cpp"})
"""What a macro stands for no grammar knows."""
_QUOTES = {
    "python": ('"""', "'''"),
    "javascript": ("`",),
    "javascriptreact": ("`",),
    "typescript": ("`",),
    "typescriptreact": ("`",),
    "go": ("`",),
    "java": ('"""',),
    "kotlin": ('"""',),
    "scala": ('"""',),
    "swift": ('"""',),
}
"""What begins and ends strings of several lines."""
_REACH = 2_000
_FOLLOWING = 20
"""Lines that are looked at for the next one that says anything."""
_CONSTRUCTS = 1
_BEGINS = re.compile(
    r"(?!(?:else|elif|elsif|except|finally|catch|rescue|ensure|end|case|default|when|then|do|where)\b)[^\s)\]}#/*\"'<>|&.,;:+-]"
)
"""A line that begins something at the left margin; what goes on with the line above does not."""
_GOES_ON = re.compile(
    r"(?:[-+*/%&|^=<>@~]|(?<![\d.])\.|(?<!\w)(?:and|or|not|in|is|if|else|lambda|await|as|from|import|del|assert))[ \t]*\Z"
)
_IMPORTS = re.compile(r"\s*(?:from\b.*)?\bimport\b")
_TOKEN = re.compile(r"\w+|[^\w\s]")


def without_faults(text: str, window: Window, around: Surroundings = Surroundings()) -> str:  # noqa: B008 - frozen
    """The longest piece of `text`, from its beginning, that brings no new parse error; empty: there is none.

    What is half-typed at the cursor is a fault already: a piece that mends it is better than a longer one that does not.
    """
    if window.language in _UNJUDGED:
        return text
    place = next((place for place in _places(window, around) if place.is_sound), None)
    if place is None:
        return text
    no_worse = ""
    for piece in itertools.islice(_pieces(text, window.language), max(2, min(1 + MOST_CUTS, MOST_PARSED // place.n_characters))):
        n = place.n_with(piece)
        if n is None:
            break  # to look for more would take too long
        n += _dangles(piece, window)
        if n == 0:
            return piece
        if n <= place.n_without and not no_worse:
            no_worse = piece
    return no_worse


def prepare(window: Window, around: Surroundings) -> None:
    """Parse what stands around the answer before it is there."""
    if window.language not in _UNJUDGED:
        next(_places(window, around), None)


def _dangles(text: str, window: Window) -> bool:
    """Whether a line of Python ends where it must go on, or goes on deeper where it must not: the grammar sees neither."""
    if window.language != "python" or window.line_after.strip():
        return False
    if _is_too_deep(text, window):
        return True
    last = (text if "\n" in text else window.line_before + text).rpartition("\n")[2]
    ends_early = _GOES_ON.search(last) or (last.rstrip().endswith(",") and _IMPORTS.match(last))
    if not ends_early and not _is_deeper(window.suffix, last) and not _is_uneven(text, window):
        return False
    said = brackets.balance(window.prefix + text, "python")
    return "#" not in last and not said.unclosed and not said.n_quotes


def _is_too_deep(text: str, window: Window) -> bool:
    """Whether the first line is indented more than the one above, which opens no block."""
    if window.line_before.strip():
        return False
    first = next((line for line in (window.line_before + text).split("\n") if line.strip()), "")
    lines = window.prefix.rsplit("\n", _FOLLOWING + 1)[1:-1]
    above = next((line for line in reversed(lines) if line.strip() and not line.lstrip().startswith("#")), "")
    if not above or n_columns(first) <= n_columns(above) or above.rstrip().endswith((":", "\\")):
        return False
    said = brackets.balance(window.prefix, "python")
    return "#" not in above and not said.unclosed and not said.n_quotes


def _said_next(suffix: str) -> str:
    """The next line that says anything."""
    lines = suffix.split("\n", _FOLLOWING + 1)[1 : _FOLLOWING + 1]
    return next((line for line in lines if line.strip() and not line.lstrip().startswith("#")), "")


def _is_uneven(text: str, window: Window) -> bool:
    """Whether what follows goes back to a column at which no block stands."""
    known = window.prefix[-_REACH:] + text
    lines = known[max(known.rfind(quote) for quote in _QUOTES["python"]) + 1 :].split("\n")  # columns inside a string say nothing
    following = n_columns(_said_next(window.suffix))
    columns: list[int] = []
    for line in reversed([line for line in lines[1:] if line.strip() and not line.lstrip().startswith("#")]):
        if not columns or n_columns(line) < columns[-1]:
            columns.append(n_columns(line))
    return bool(columns) and columns[-1] < following < columns[0] and following not in columns


def _is_deeper(suffix: str, last: str) -> bool:
    """Whether what follows a line that opens no block is indented more than it."""
    following = _said_next(suffix)
    return n_columns(following) > n_columns(last) and not last.rstrip().endswith((":", "\\")) and bool(last.strip())


class _Place(msgspec.Struct, frozen=True):
    """The text around the cursor as far as it is parsed."""

    before: str
    after: str
    language: str
    cut: Ends
    n_without: int = 0
    """Faults, all of which touch the cursor if the place `is_sound`."""
    is_sound: bool = False
    """Whether the grammar understands all of it but what is half-typed: else a fault more says nothing of the answer."""

    @property
    def n_characters(self) -> int:
        return len(self.before) + len(self.after) + 1

    def n_with(self, text: str) -> int | None:
        """Faults with `text` put in; None: there is no tree."""
        cut = self.cut
        if (
            cut.end and not cut.start and self.language == "python"
        ):  # no block waits for a closer there: what is open at the end was opened by a bracket
            cut = Ends(cut.start, cut.end, counts_from=len(self.before) + len(text))
        return faults.count(self.before + text + self.after, self.language, cut=cut)


def _places(window: Window, around: Surroundings) -> Iterator[_Place]:
    """What stands near; where that would be cut out of a comment or a string, all that there is."""
    whole_before, whole_after = around.before + window.prefix, window.suffix + around.after
    is_cut = around.cut_before if around.before else not window.whole_prefix
    ends_inside = around.cut_after if around.after else not window.whole_suffix
    before, after = _near_end(whole_before), _near_start(whole_after)
    if (before, after) != (whole_before, whole_after) and not _is_quoting(whole_before[: len(whole_before) - len(before)], window.language):
        cut = Ends(is_cut and before == whole_before, ends_inside and after == whole_after)
        yield _judged(before, after, window.language, cut, is_all=False)
        return
    yield _judged(whole_before, whole_after, window.language, Ends(is_cut, ends_inside), is_all=True)


@lru_cache(maxsize=4)
def _judged(before: str, after: str, language: str, cut: Ends, *, is_all: bool) -> _Place:
    found = faults.around(before + after, len(before), language, cut=cut)
    if found is None:
        return _Place(before, after, language, cut)
    # A large fault that reaches the place may be a comment or a string whose beginning is not there.
    return _Place(
        before, after, language, cut, found.n, is_sound=not found.n_elsewhere and not (found.n_above and (language in _HARD or not is_all))
    )


def n_faults(text: str, window: Window, around: Surroundings) -> int:
    """Parse errors of the document with `text` put in; 0 where no grammar is at hand."""
    place = next((place for place in _places(window, around) if place.is_sound), None)
    return (place.n_with(text) or 0) if place is not None else 0


def _is_quoting(text: str, language: str) -> bool:
    """Whether a comment or a string of several lines is open at the end of `text`, by what opens and closes them."""
    opener, closer = comments.block(language)
    if opener and text.rfind(opener) > text.rfind(closer):
        return True
    return any(text.count(quote) % 2 for quote in _QUOTES.get(language, ()))


def _near_end(text: str) -> str:
    """The construct at the left margin in which the text ends, and the one before it: to parse more says no more."""
    at, n = len(text), 0
    while at > 0:
        at = text.rfind("\n", 0, at) + 1
        if _BEGINS.match(text, at):
            n += 1
            if n > _CONSTRUCTS:
                return text[at:]
        at -= 1
    return text


def _near_start(text: str) -> str:
    """To the end of the construct at the left margin in which the text begins, and of the one behind it."""
    at, n = text.find("\n"), 0
    while at >= 0:
        if _BEGINS.match(text, at + 1):
            n += 1
            if n > _CONSTRUCTS:
                return text[: at + 1]
        at = text.find("\n", at + 1)
    return text


def _pieces(text: str, language: str) -> Iterator[str]:
    """All of it, then to the end of each line from the last one upwards, then the first line without its last tokens.

    Of which less than half would be left, that was not what the model meant.
    """
    yield text
    cuts = [at for at, character in enumerate(text) if character == "\n" and text[:at].strip()]
    first = text[: cuts[0]] if cuts else text
    tokens = [match.end() for match in _TOKEN.finditer(first) if len(first[: match.end()].strip()) * 2 >= len(first.strip())]
    n_open = len(brackets.balance(first, language).unclosed)
    for at in [*reversed(cuts), *reversed(tokens[:-1])]:
        piece = text[:at]
        # What the model opened and closed is not to be closed by what follows.
        if piece.strip() and (at in cuts or len(brackets.balance(piece, language).unclosed) <= n_open):
            yield piece
