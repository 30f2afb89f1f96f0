"""What follows at a place that is like the cursor's, as it would be written at the cursor (pure)."""

from __future__ import annotations

from itertools import islice

import msgspec

from monkeycode_lsp.recall import rename
from monkeycode_lsp.recall.likeness import Here, Likeness
from monkeycode_lsp.recall.rename import Renaming
from monkeycode_lsp.recall.shape import Line

MOST_LINES = 12
MOST_CHARACTERS = 350
"""No answer is longer."""
_ABOVE_LINES = 20
"""So far above another place are the names that belong to it."""
_LOOKED_AT = 8
"""So many lines below the cursor's are looked at for one that is not blank."""
_OPENERS = ("{", "(", "[")
_CLOSERS = frozenset(")]}>\"'`:;,")


class Continuation(msgspec.Struct, frozen=True):
    """Text that may follow the cursor."""

    text: str
    is_renamed: bool


def of(here: Here, like: Likeness) -> Continuation | None:
    """None if nothing that could be said here follows there."""
    lines = _lines(here, like)
    following = _following(here)
    if not lines or lines[0].rstrip() == following:
        return None  # nothing, or the cursor's own place as it is or was
    renaming = _renaming(here, like, lines[0])
    moved = _reindented(lines, like)
    if renaming is None or not moved:
        return None
    there = "\n".join(moved)
    text = rename.renamed(there, renaming)
    if text is None or not (like.is_whole or text.startswith(here.window.line_before)):
        return None
    is_renamed = text != there
    if is_renamed and _is_of_there(rename.names_in(text) & rename.names_in(there), renaming, here, like):
        return None
    rest = _before(following, _at_cursor(text, here, is_whole=like.is_whole), here)
    return Continuation(rest, is_renamed) if rest else None


def _lines(here: Here, like: Likeness) -> list[str]:
    """The cursor's line there, and what is below it as long as it belongs together."""
    below = like.block.below(like.at, MOST_LINES + here.n_blank + 1)
    if like.is_whole:
        line = like.block.lines[like.at]
        return _together([line or "", *below])
    n_skipped = 0
    while n_skipped < len(below) and not below[n_skipped].strip() and (here.head or n_skipped < here.n_blank):
        n_skipped += 1
    return _together(below[n_skipped:])


def _together(lines: list[str]) -> list[str]:
    """Up to a line that is further out than the first, and with it if it only closes something."""
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        return []
    least = _n_indent(first)
    for n, line in enumerate(lines):
        if line.strip() and _n_indent(line) < least:
            is_closer = line.strip()[0] in ")]}"
            return lines[: n + is_closer]
    return lines


def _n_indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _renaming(here: Here, like: Likeness, line: str) -> Renaming | None:
    """By the lines above, and by what both lines at the cursor begin with."""
    pairs = list(like.pairs)
    there = here.lexer.read(line)
    if here.head is not None and there is not None and not like.is_whole:
        pairs += _paired(there, here.head, is_cut=here.window.line_before[-1:].isidentifier())
    return rename.between(pairs)


def _paired(there: Line, head: Line, *, is_cut: bool) -> list[tuple[str, str]]:
    """Names of the line that the beginning tells of; its last one may be cut off."""
    n = len(head.shape) - is_cut
    if there.shape[:n] != head.shape[:n]:
        return []
    pairs = list(zip(there.names, head.names, strict=False))
    if is_cut and head.shape[-1] == "name":
        n_whole = len(head.names) - 1
        if len(there.names) > n_whole and there.names[n_whole].startswith(head.names[-1]):
            pairs = pairs[:n_whole]
    return pairs


def _reindented(lines: list[str], like: Likeness) -> list[str]:
    """As far as each line has a place here."""
    there, now = like.indent_there, like.indent_here
    if there == now:
        return lines
    moved: list[str] = []
    for line in lines:
        if not line.strip():
            moved.append("")
        elif line.startswith(there):
            moved.append(now + line[len(there) :])
        else:
            indent = line[: _n_indent(line)]
            extra = there.removeprefix(indent)
            if not now.endswith(extra):
                break
            moved.append(now.removesuffix(extra) + line[len(indent) :])
    return moved


def _is_of_there(kept: set[str], renaming: Renaming, here: Here, like: Likeness) -> bool:
    """Whether a name was kept that belongs to the other place: it stands above there, and nowhere here."""
    window = here.window
    foreign = [name for name in kept - set(renaming.names) if name not in window.prefix and name not in window.suffix]
    if not foreign:
        return False
    above = "\n".join(islice(like.block.above(like.at), _ABOVE_LINES))
    return any(name in above for name in foreign)


def _at_cursor(text: str, here: Here, *, is_whole: bool) -> str:
    """What comes after the cursor's text; empty if the text behind the cursor is in its way."""
    line, line_end, below = text.partition("\n")
    rest = "" if is_whole else line[len(here.window.line_before) :]
    after = here.window.line_after.rstrip()
    if not after.strip():
        return rest + line_end + below
    if rest.rstrip().endswith(after):
        return rest.rstrip().removesuffix(after)
    if set(after) - _CLOSERS:
        return ""
    # Closers of the editor: `print(‸)` wants what goes between, `{‸}` a body.
    return rest + line_end + below if (here.window.line_before + rest).rstrip().endswith(_OPENERS) else rest


def _following(here: Here) -> str:
    """The first line below the cursor's that is not blank."""
    return next((line.rstrip() for line in here.window.suffix.split("\n", _LOOKED_AT)[1:_LOOKED_AT] if line.strip()), "")


def _before(following: str, text: str, here: Here) -> str:
    """Up to a line that stands below the cursor already, and no longer than an answer."""
    kept: list[str] = []
    n_characters = 0
    for n, line in enumerate(text.split("\n")):
        said = here.window.line_before + line if not n else line
        n_characters += len(line) + 1
        if (following and said.rstrip() == following) or n >= MOST_LINES or n_characters > MOST_CHARACTERS:
            break
        kept.append(line)
    return "\n".join(kept).rstrip()
