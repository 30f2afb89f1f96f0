"""Does a text that was made for one place still agree with another?  (pure)

The other place is the same one a little later: some of the text was typed there, or taken word by word,
and the editor may have closed brackets and quotes by itself.  What is given back, put at the cursor, always
continues the document as the text does; it never closes what stands closed already.
"""

from __future__ import annotations

import msgspec

from monkeycode_lsp.domain import Window
from monkeycode_lsp.recall import closers

LOOK_BACK = 128
"""Characters that a running text may be behind what was typed; of what was said, all may be there already."""
ENOUGH = 400
"""Characters before the cursor that must agree where two windows start at different lines."""
ENOUGH_AFTER = 100
"""Characters after the cursor that must agree where two windows end at different lines."""
_LINE = 500
"""Of a longer line, only the end is looked at for open brackets."""
_BLANKS = " \t"


class Rest(msgspec.Struct, frozen=True):
    """How a text that agrees goes on."""

    text: str
    """What of it is still to come; may be empty."""
    n_typed: int
    """How many characters of it are in the document already."""
    decided: bool
    """False: it is still being made and has not come as far as was typed, but nothing contradicts so far (`text` is empty then)."""


def rest(then: Window, text: str, now: Window, *, whole: bool, enough: int = ENOUGH) -> Rest | None:
    """What of `text`, made for `then`, is still to come at `now`; None: they contradict.

    `whole`: nothing will be added to `text` any more.
    """
    typed = between(then, now, most=len(text) + LOOK_BACK, enough=enough)
    if typed is None:
        return None
    shaped = _as_typed(then.prefix, text, typed)
    if shaped is None or (whole and len(shaped) < len(typed)):
        return None
    decided = len(shaped) >= len(typed)
    ahead = shaped[len(typed) :]
    left = _before_suffix(then, typed, ahead, now, whole=whole)
    if left is None:
        return None
    return Rest(left, _n_typed(text, typed) if decided else len(text), decided)


def taken(then: Window, text: str, now: Window, *, enough: int = ENOUGH) -> bool:
    """Whether all of `text`, made for `then`, stands before the cursor at `now`."""
    typed = between(then, now, most=len(text) + LOOK_BACK, enough=enough)
    return typed is not None and typed.startswith(text)


def between(then: Window, now: Window, *, most: int = LOOK_BACK, enough: int = ENOUGH) -> str | None:
    """What was put before the cursor since `then`; None: `now` is another place, or is left of it, or more than `most` was."""
    before, prefix = then.prefix, now.prefix
    if prefix.startswith(before):
        return prefix[len(before) :] if len(prefix) - len(before) <= most else None
    if (then.whole_prefix and now.whole_prefix) or len(before) < enough:
        return None
    # The windows start at different lines of the same document.
    tail = before[-enough:]
    at = prefix.rfind(tail, max(0, len(prefix) - most - enough))
    if at < 0:
        return None
    head = prefix[: at + len(tail)]
    return prefix[len(head) :] if head.endswith(before) or before.endswith(head) else None


def same_suffix(then: Window, now: Window) -> bool:
    """Whether the same text stands after both cursors."""
    return _same_start(then.suffix, now.suffix, then, now)


def _same_start(a: str, b: str, then: Window, now: Window) -> bool:
    if a == b:
        return True
    # Windows that end at different lines: only one that was cut can be the shorter one.
    if len(a) < len(b):
        return not then.whole_suffix and len(a) >= ENOUGH_AFTER and b.startswith(a)
    return not now.whole_suffix and len(b) >= ENOUGH_AFTER and a.startswith(b)


def _before_suffix(then: Window, typed: str, ahead: str, now: Window, *, whole: bool) -> str | None:
    """`ahead` up to what stands after the cursor already; None: that is not what stood there, with or without automatic closers."""
    plain = same_suffix(then, now)
    if plain and not (typed and then.suffix[:1] in closers.CLOSING):
        return ahead
    if not typed:
        return ahead if plain else None
    found = closers.opened(then.line_before[-_LINE:], typed, ahead, whole=whole)
    if found is None:
        return None
    # What the user closed, an editor does not insert where it stands already: the cursor moves over it.
    for n_over in reversed(closers.typed_over(then.suffix, found)):
        kept = then.suffix[n_over:]
        for stands in closers.standing(now.suffix, found, typed):
            if _same_start(kept, now.suffix[stands.n_characters :], then, now):
                return closers.until_closed(found, stands, now.suffix, whole=whole) if stands.depths else ahead
    return None


def _as_typed(before: str, text: str, typed: str) -> str | None:
    """`text` with the white space that the editor has put where lines begin; None: something else was typed."""
    for _ in range(typed.count("\n") + 1):
        if text.startswith(typed) or typed.startswith(text):
            return text
        shaped = _with_indent(before, text, typed)
        if shaped is None:
            return None
        text = shaped
    return None


def _with_indent(before: str, text: str, typed: str) -> str | None:
    """`text` with the indentation that the first line which differs was given; None: that is not all that differs."""
    differs = next((n for n, (a, b) in enumerate(zip(text, typed, strict=False)) if a != b), 0)
    start = typed.rfind("\n", 0, differs) + 1
    made, given = _indent(text[start:]), _indent(typed[start:])
    if start == 0 or made == given:
        return None
    end = start + len(made)
    if text.startswith("\n", end):
        return text[:start] + given + text[end:]
    # Both must say that a block begins: how deep it stands is the editor's affair, whether it does is not.
    lines = (before[-_LINE:] + text[:start]).split("\n")
    base = _indent(next((line for line in reversed(lines) if line.strip(_BLANKS)), ""))
    if not all(indent.startswith(base) and len(indent) > len(base) for indent in (made, given)):
        return None
    return text[:start] + given + _shifted(text[end:], made, given)


def _shifted(text: str, made: str, given: str) -> str:
    """The rest of a block, moved like its first line, and what follows it."""
    first, *lines = text.split("\n")
    shifted = [first]
    is_same_kind = made.startswith(given) or given.startswith(made)
    for n, line in enumerate(lines):
        if not line.strip(_BLANKS):
            shifted.append(line)
        elif line.startswith(made):
            shifted.append(given + line[len(made) :])
        else:
            # Tabs and blanks would stand side by side.
            shifted += lines[n:] if is_same_kind else []
            break
    return "\n".join(shifted)


def _n_typed(text: str, typed: str) -> int:
    """How much of `text` was typed, whatever the white space that its lines begin with."""
    n_lines = typed.count("\n")
    if text.startswith(typed):
        return len(typed)
    start = len("\n".join(text.split("\n")[:n_lines])) + 1
    line = typed[typed.rfind("\n") + 1 :]
    made, said = _indent(text[start:]), line.lstrip(_BLANKS)
    return start + (len(made) + len(said) if said else min(len(made), len(line)))


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(_BLANKS))]
