"""Drafts: what was said, or stands, at places that are like the one at the cursor.

Looser matches are wrong far too often to be shown.  As drafts they do no harm: the engine verifies them, so that a
confirmed one is exact.  Nothing crosses scopes or languages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal

import msgspec

from monkeycode_lsp.domain import Window
from monkeycode_lsp.recall import continuation, likeness, rename
from monkeycode_lsp.recall.blocks import Block
from monkeycode_lsp.recall.likeness import Here, Likeness
from monkeycode_lsp.recall.passages import Documents, Said, Surroundings

SLICE_LINES = 250
"""So many lines are read in a millisecond or two."""
_PER_KEY = 4
_CANDIDATES = 24
_TRIES = 3
_ALIKE = 2
"""Where no line is the same, so many must be alike."""

Source = Literal["renamed", "edited", "repeated"]


class Draft(msgspec.Struct, frozen=True):
    """Text that the model will probably say."""

    text: str
    source: Source


class Near:
    """What is known of places like others."""

    # The mutable state is that of its three kinds of text.

    def __init__(self) -> None:
        self._said = Said()
        self._documents = Documents()
        self._surroundings = Surroundings()

    def add(self, scope: str, window: Window, text: str) -> None:
        """Remember a finished suggestion, or what the user wrote there."""
        if text.strip():
            self._said.add(scope, window, text)

    def learn(self, scope: str, uri: str, language: str, lines: Sequence[str]) -> None:
        """Take the text of an open document; it is of use once `read` has read it."""
        self._documents.learn(scope, uri, language, lines)

    def read(self, n_lines: int = SLICE_LINES) -> bool:
        """Read a little of what was taken; whether something is left."""
        return self._documents.read(n_lines)

    def forget(self, uri: str) -> None:
        """The document was closed."""
        self._documents.forget(uri)

    def draft(self, scope: str, window: Window) -> str:
        """The text that the model will probably say at the cursor; empty if nothing is near."""
        found = self.find(scope, window)
        return found.text if found is not None else ""

    def find(self, scope: str, window: Window) -> Draft | None:
        """The same, with what made it."""
        here = likeness.here(window)
        if here is None or not here.above:
            return None
        found = sorted(islice(self._candidates(here, scope), _CANDIDATES), key=lambda like: like.rank, reverse=True)
        for like in found[:_TRIES]:
            made = continuation.of(here, like)
            if made is None:
                continue
            if made.is_renamed:
                return Draft(made.text, "renamed")
            if like.is_edited:
                return Draft(made.text, "edited")
            if not _is_read_anyway(made.text, like, window):
                return Draft(made.text, "repeated")
        return None

    def _candidates(self, here: Here, scope: str) -> Iterator[Likeness]:
        language = here.window.language
        for block in self._said.blocks(scope, language):
            yield from _edited(here, block)
            yield from _alike(here, block)
        for block in (*self._surroundings.of(here.window), *self._documents.blocks(scope, language)):
            yield from _alike(here, block)


def _alike(here: Here, block: Block) -> Iterator[Likeness]:
    """Places with the same shape: of the line and the one above, or of the two above, or of one telling line."""
    if here.head is not None:
        for at in _first(block.pairs(here.above[0], here.head), block.singles(here.head)):
            like = likeness.at_line(here, block, at)
            if like is not None and _is_enough(like):
                yield like
    pairs = block.pairs(here.above[1], here.above[0]) if len(here.above) > 1 else iter(())
    for at in _first(pairs, block.singles(here.above[0])):
        like = likeness.below_line(here, block, at)
        if like is not None and _is_enough(like):
            yield like


def _edited(here: Here, block: Block) -> Iterator[Likeness]:
    """Places where the line above the cursor's is another one, and those above it are the same."""
    if len(here.above) < 3:  # noqa: PLR2004 - the edited line and a pair
        return
    for at in islice(block.pairs(here.above[2], here.above[1]), _PER_KEY):
        edited = block.next_line(at)
        like = likeness.below_line(here, block, edited, is_edited=True) if edited is not None else None
        if like is not None:
            yield like


def _first(*walks: Iterator[int]) -> Iterator[int]:
    seen: set[int] = set()
    for walk in walks:
        for at in islice(walk, _PER_KEY):
            if at not in seen:
                seen.add(at)
                yield at


def _is_enough(like: Likeness) -> bool:
    """One line of the same shape says little if its names have nothing in common."""
    return like.n_same > 0 or like.n_alike >= _ALIKE or any(rename.are_akin(old, new) for old, new in like.pairs)


def _is_read_anyway(text: str, like: Likeness, window: Window) -> bool:
    """Whether the prompt holds it: the engine finds repetitions in there by itself."""
    line = (like.block.lines[like.at] or "").strip()
    said = text.strip("\n").split("\n", 1)[0].strip()
    for half in (window.prefix, window.suffix):
        at = half.find(said)
        if at >= 0 and line in half[max(0, at - 400) : at]:
            return True
    return False
