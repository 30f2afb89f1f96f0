"""How much a place in a block is like the place where the cursor stands (pure)."""

from __future__ import annotations

from itertools import islice, zip_longest

import msgspec

from monkeycode_lsp.domain import Window
from monkeycode_lsp.recall.blocks import Block, Key
from monkeycode_lsp.recall.shape import LONGEST, Lexer, Line

CONTEXT_LINES = 5
"""So many lines above the cursor are compared."""
_EDITED_LINES = 3
"""Where one line differs, so many others must be the same."""
_LOOKED_AT = 4_000
_LOOKED_AT_LINES = 40
"""Characters and lines before the cursor in which those lines are looked for."""


class Here(msgspec.Struct, frozen=True):
    """Where the cursor stands."""

    window: Window
    above: tuple[Line, ...]
    """The lines above that are not blank, nearest first."""
    n_blank: int
    """Blank lines between them and the cursor's line."""
    head: Line | None
    """The cursor's line up to the cursor; None if that is blank."""
    lexer: Lexer

    @property
    def keys_at_line(self) -> tuple[Key, ...]:
        """Where the cursor's line is a whole line: not while a word is being written."""
        is_in_word = self.window.prefix[-1:].isalnum() or self.window.prefix.endswith("_")
        return ((self.above[0].key, self.head.key), self.head.key) if self.head is not None and not is_in_word else ()

    @property
    def keys_below_line(self) -> tuple[Key, ...]:
        """Where the nearest line above is."""
        one = self.above[0].key
        return ((self.above[1].key, one), one) if len(self.above) > 1 else (one,)

    @property
    def keys_edited(self) -> tuple[Key, ...]:
        """Where the pair above the nearest line is."""
        return ((self.above[2].key, self.above[1].key),) if len(self.above) >= _EDITED_LINES else ()


class Likeness(msgspec.Struct, frozen=True):
    """A place in a block, and what it has in common with the cursor's."""

    block: Block
    at: int
    """The last line that is before the cursor there, or that the cursor is in."""
    is_whole: bool
    """Whether the cursor is at the end of that line, and not in a line below."""
    n_same: int
    """Lines with the same text, the edited one not among them."""
    n_alike: int
    """Lines of the same shape."""
    is_edited: bool
    pairs: tuple[tuple[str, str], ...]
    """Names there and here."""
    indent_there: str
    indent_here: str

    @property
    def rank(self) -> tuple[int, int]:
        return (self.n_same, self.n_alike)


def here(window: Window, lexer: Lexer) -> Here | None:
    """What is compared; None where the cursor's line is too long to be code, or the first."""
    lines = window.prefix[-_LOOKED_AT:].rsplit("\n", _LOOKED_AT_LINES)
    if len(lines[-1]) > LONGEST or len(window.line_after) > LONGEST:
        return None
    above: list[Line] = []
    n_blank = 0
    for line in reversed(lines[1:-1] if len(lines) > _LOOKED_AT_LINES else lines[:-1]):
        if not line.strip():
            n_blank += not above
            continue
        made = lexer.read(line)
        if made is None:
            break
        above.append(made)
        if len(above) == CONTEXT_LINES:
            break
    return Here(window, tuple(above), n_blank, lexer.read(lines[-1]), lexer) if above else None


def at_line(here: Here, block: Block, at: int) -> Likeness | None:
    """The cursor's line, up to the cursor, is the whole line at `at`."""
    return here.head and _compared(here, (here.head, *here.above), block, at, is_whole=True)


def below_line(here: Here, block: Block, at: int, *, is_edited: bool = False) -> Likeness | None:
    """The nearest line above the cursor is the one at `at`, but for an edit."""
    return _compared(here, here.above, block, at, is_whole=False, is_edited=is_edited)


def _compared(here: Here, lines: tuple[Line, ...], block: Block, at: int, *, is_whole: bool, is_edited: bool = False) -> Likeness | None:
    if not is_whole and not block.below(at, 1):
        return None  # as at the cursor itself
    pairs: dict[str, str] = {}
    back: dict[str, str] = {}
    n_same = n_alike = 0
    indent_there, indent_here = "", lines[0].indent
    for n, (line, text) in enumerate(zip_longest(lines, islice(block.above(at), len(lines)))):
        if line is None or text is None:
            break
        is_exempt = is_edited and not n
        there = here.lexer.read(text)
        if there is None or (there.shape != line.shape and not is_exempt):
            break
        if not n:
            indent_there = there.indent
        if not is_exempt:
            step = len(line.indent) - len(indent_here)
            step_there = len(there.indent) - len(indent_there)
            if _sign(step) != _sign(step_there) or not _add(pairs, back, there.names, line.names):
                break
            n_same += there.text == line.text
            n_alike += 1
    if not n_alike or (is_edited and n_same < min(_EDITED_LINES, len(lines) - 1)):
        return None
    return Likeness(block, at, is_whole, n_same, n_alike, is_edited, tuple(pairs.items()), indent_there, indent_here)


def _sign(n: int) -> int:
    return (n > 0) - (n < 0)


def _add(pairs: dict[str, str], back: dict[str, str], theirs: tuple[str, ...], ours: tuple[str, ...]) -> bool:
    """Whether these names go with the others, one to one; then they are among them."""
    new: dict[str, str] = {}
    new_back: dict[str, str] = {}
    for old, name in zip(theirs, ours, strict=True):
        if (pairs.get(old) or new.setdefault(old, name)) != name or (back.get(name) or new_back.setdefault(name, old)) != old:
            return False
    pairs.update(new)
    back.update(new_back)
    return True
