"""Drafts: what was said, or stands, at places that are like the one at the cursor.

Looser matches are wrong far too often to be shown.  As drafts they do no harm: the engine verifies them, so that a
confirmed one is exact.  Nothing crosses scopes or languages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal

import msgspec

from monkeycode_lsp import stops
from monkeycode_lsp.domain import Window
from monkeycode_lsp.recall import continuation, likeness, rename
from monkeycode_lsp.recall.blocks import Block, Key
from monkeycode_lsp.recall.likeness import Here, Likeness
from monkeycode_lsp.recall.passages import Documents, Said, Surroundings
from monkeycode_lsp.recall.shape import Lexer

SLICE_LINES = 250
"""So many lines are read in a millisecond or two."""
_LEAST_CHARACTERS = 6
"""A draft is trusted after its first tokens: less is of no use."""
_PER_KEY = 3
_CANDIDATES = 8
_TRIES = 4

Source = Literal["renamed", "edited", "repeated"]


class Draft(msgspec.Struct, frozen=True):
    """Text that the model will probably say."""

    text: str
    source: Source


class Near:
    """What is known of places like others."""

    # The mutable state is that of its three kinds of text and of what is remembered of lines, the number of changes to
    # the texts (`add`, `learn`, `read`, `forget`), and the places that were found last (`find`).

    def __init__(self) -> None:
        self._said = Said()
        self._documents = Documents()
        self._surroundings = Surroundings()
        self._lexer = Lexer()
        self._n_changes = 0
        self._below: tuple[object, tuple[Likeness, ...]] = (None, ())

    def add(self, scope: str, window: Window, text: str) -> None:
        """Remember a finished suggestion, or what the user wrote there."""
        if text.strip():
            self._n_changes += 1
            self._said.add(scope, window, text)

    def learn(self, scope: str, uri: str, language: str, lines: Sequence[str]) -> None:
        """Take the text of an open document; it is of use once `read` has read it."""
        self._n_changes += 1
        self._documents.learn(scope, uri, language, lines)

    def read(self, n_lines: int = SLICE_LINES) -> bool:
        """Read a little of what was taken; whether something is left."""
        self._n_changes += 1
        return self._documents.read(n_lines)

    def forget(self, uri: str) -> None:
        """The document was closed."""
        self._n_changes += 1
        self._documents.forget(uri)

    def draft(self, scope: str, window: Window) -> str:
        """The text that the model will probably say at the cursor; empty if nothing is near."""
        found = self.find(scope, window)
        return found.text if found is not None else ""

    def find(self, scope: str, window: Window) -> Draft | None:
        """The same, with what made it."""
        here = likeness.here(window, self._lexer)
        if here is None:
            return None
        found = sorted(self._candidates(here, scope), key=lambda like: like.rank, reverse=True)
        for like in found[:_TRIES]:
            made = continuation.of(here, like)
            text = _as_answer(made.text, window) if made is not None else ""
            if made is None or len(text) < _LEAST_CHARACTERS:
                continue
            if made.is_renamed:
                return Draft(text, "renamed")
            if not _is_read_anyway(text, window):
                return Draft(text, "edited" if like.is_edited else "repeated")
        return None

    def _candidates(self, here: Here, scope: str) -> Iterator[Likeness]:
        """Places like the cursor's.  Those below lines that are alike stay the same while the user types in one line."""
        said = tuple(self._said.blocks(scope, here.window.language))
        around = self._surroundings.of(here.window)
        others = (*around, *self._documents.blocks(scope, here.window.language))
        yield from islice(_at_line(here, (*said, *others)), _CANDIDATES)
        asked = (self._n_changes, scope, here.window.language, here.above, around)
        if self._below[0] != asked:
            self._below = (asked, tuple(islice(_below_line(here, said, others), _CANDIDATES)))
        yield from self._below[1]


def _at_line(here: Here, blocks: Iterable[Block]) -> Iterator[Likeness]:
    keys = here.keys_at_line
    for block in blocks:
        if not block.has_none(keys):
            yield from _alike(here, block, keys, likeness.at_line)


def _below_line(here: Here, said: Iterable[Block], others: Iterable[Block]) -> Iterator[Likeness]:
    keys = here.keys_below_line
    for block in said:
        yield from _edited(here, block)
        yield from _alike(here, block, keys, likeness.below_line)
    for block in others:
        if not block.has_none(keys):
            yield from _alike(here, block, keys, likeness.below_line)


def _alike(here: Here, block: Block, keys: Sequence[Key], compare: Callable[[Here, Block, int], Likeness | None]) -> Iterator[Likeness]:
    for at in _places(block, keys):
        like = compare(here, block, at)
        if like is not None and _is_enough(like):
            yield like


def _edited(here: Here, block: Block) -> Iterator[Likeness]:
    """Places where the line above the cursor's is another one, and those above it are the same."""
    for at in _places(block, here.keys_edited):
        edited = block.next_line(at)
        like = likeness.below_line(here, block, edited, is_edited=True) if edited is not None else None
        if like is not None:
            yield like


def _places(block: Block, keys: Sequence[Key]) -> Iterator[int]:
    """Each once."""
    return iter(dict.fromkeys(at for key in keys for at in block.places(key, _PER_KEY)))


def _is_enough(like: Likeness) -> bool:
    """Where no line is the same, the shape alone says little: the names must have something in common."""
    return like.n_same > 0 or any(rename.are_akin(old, new) for old, new in like.pairs)


def _as_answer(text: str, window: Window) -> str:
    """Up to where an answer would be complete: to propose what comes after is a waste."""
    stop = stops.find(f"{text}\n", window, stops.plan(window, "auto"))
    return text[: stop.at] if stop is not None else text


def _is_read_anyway(text: str, window: Window) -> bool:
    """Whether the prompt holds it: the engine finds repetitions in there by itself."""
    line = text.lstrip().split("\n", 1)[0]
    return line in window.prefix or line in window.suffix
