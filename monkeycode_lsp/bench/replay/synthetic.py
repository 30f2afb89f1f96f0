"""Types a given text as a person might: a trace for a language or a style of code of which there is no recording.

The same text and seed give the same trace, and it ends with exactly that text.

Where the numbers come from: recorded typing of code has gaps of 73, 108, 181, 390 and 1478 ms at its 10th, 25th, 50th, 75th
and 90th percentile (pauses beyond three seconds counted as three); four of five changes put in one character, one of ten takes
something away, the rest are pastes, indentation and the like.  Gaps here are log-normal, with pauses before words, at line ends
and before blocks, and so many slips, that the whole comes near to that; `_GAP_S` and its kin are not measured one by one.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import takewhile

import msgspec

from monkeycode_lsp.bench.replay.trace import Key, Patch, Trace

_GAP_S, _GAP_SIGMA = 0.14, 0.6
"""Between the letters of a word."""
_WORD_S, _WORD_SIGMA = 0.24, 0.7
"""Before a word or a sign."""
_THOUGHT_S, _THOUGHT_SIGMA = 1.2, 0.9
"""At the end of a line, after a correction was noticed, inside a line now and then."""
_BLOCK_S, _BLOCK_SIGMA = 1.9, 0.6
"""Before a new block, and before a jump elsewhere."""
_MOST_PAUSE_S = 3.0

_STOPS_TO_THINK = 0.5
"""Share of the words before which somebody stops."""
_TYPO = 0.08
_UNSEEN = 0.25
"""Share of the typos that are found only after the line was finished."""
_MOST_TYPED_ON = 4
"""Letters that follow a typo before it is noticed."""
_LEFT_OUT = 0.04
"""Share of the lines that come to mind only later, such as an import."""
_GOES_BACK = 0.25
"""Chance at a line's end that something left behind is put right."""
_PASTE = 0.02
_PASTE_AGAIN = 0.5
"""Chance that two lines which stand above already are copied instead of typed again."""
_MOST_PASTED_LINES = 5
_NEXT_TO = {
    "a": "s", "b": "v", "c": "x", "d": "f", "e": "r", "f": "d", "g": "h", "h": "g", "i": "o", "j": "k", "k": "l", "l": "k", "m": "n",
    "n": "m", "o": "p", "p": "o", "q": "w", "r": "t", "s": "a", "t": "r", "u": "y", "v": "b", "w": "e", "x": "z", "y": "u", "z": "x",
}  # fmt: skip


class _Left(msgspec.Struct):
    """Something that will be put right later: at `position`, `n_wrong` characters are to become `right`."""

    position: int
    n_wrong: int
    right: str


class _Hand:
    """Who types, always at the end of the text except where something is put right.

    The mutable state is the keys so far, the time, the length of the text, what was left to be put right, the indentation of
    the last line and whether nothing else stands on it yet; it changes in `_edit` and in the methods that say so.
    """

    def __init__(self, chance: random.Random) -> None:
        self.keys: list[Key] = []
        self.left: list[_Left] = []
        self._chance = chance
        self._at = 0.0
        self._n_chars = 0
        self._indent = ""
        self._is_bare = True

    def line(self, content: str) -> None:
        """Type a line; the indentation that the editor has made is mended first."""
        if not content:
            return
        indent = content[: len(content) - len(content.lstrip(" \t"))]
        self._indent_to(indent)
        before = " "
        for char in content[len(indent) :]:
            if not (_is_word(before) and _is_word(char)):
                self._edit(self._gap_before_word(), self._n_chars, 0, char)
            elif char in _NEXT_TO and self._chance.random() < _TYPO:
                self._slip(char)
            else:
                self._edit(self._gap(), self._n_chars, 0, char)
            before = char

    def enter(self, *, opens: bool) -> None:
        """A new line.  The editor indents it like the one above; from a line that stays empty it takes its indentation back."""
        gap = self._before_block() if opens else self._thought()
        n_unused = len(self._indent) if self._is_bare else 0
        self._edit(gap, self._n_chars - n_unused, n_unused, "\n" + self._indent)
        self._is_bare = True

    def paste(self, text: str) -> None:
        """Whole lines at once, in the place of the indentation that is there."""
        n = len(self._indent)
        self._edit(self._before_block(), self._n_chars - n, n, text)
        last = text[text.rfind("\n") + 1 :]
        self._indent, self._is_bare = last[: len(last) - len(last.lstrip(" \t"))], False

    def leave_out(self, text: str) -> None:
        """These lines will be typed later, before whatever comes now."""
        at = self._n_chars - len(self._indent)
        if self.left and self.left[-1].position == at and not self.left[-1].n_wrong:
            self.left[-1].right += text
        else:
            self.left.append(_Left(at, 0, text))

    def put_right(self) -> None:
        """Jump to something that was left, mend it, and be back at the end with the next key."""
        left = self.left.pop(self._chance.randrange(len(self.left)))
        gap = self._before_block()
        for n in range(left.n_wrong, 0, -1):
            self._edit(gap, left.position + n - 1, 1, "")
            gap = self._gap()
        for at, char in enumerate(left.right, left.position):
            self._edit(gap, at, 0, char)
            gap = self._gap()
        for other in self.left:
            if other.position >= left.position:
                other.position += len(left.right) - left.n_wrong

    def finish(self) -> None:
        """Put right all that was left, and take away indentation behind which nothing was typed."""
        if self._is_bare and self._indent:
            self._edit(self._thought(), self._n_chars - len(self._indent), len(self._indent), "")
            self._indent = ""
        while self.left:
            self.put_right()

    def _indent_to(self, indent: str) -> None:
        n_same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(self._indent, indent, strict=False)))
        n_wrong = len(self._indent) - n_same
        if n_wrong:
            self._edit(self._gap(), self._n_chars - n_wrong, n_wrong, "")
        if n_same < len(indent):
            self._edit(self._gap(), self._n_chars, 0, indent[n_same:])
        self._indent, self._is_bare = indent, False

    def _slip(self, char: str) -> None:
        """Hit the key beside the right one: seen a few letters on and mended at once, or seen much later."""
        self._edit(self._gap(), self._n_chars, 0, _NEXT_TO[char])
        if self._chance.random() < _UNSEEN:
            self.left.append(_Left(self._n_chars - 1, 1, char))
            return
        n_on = self._chance.randrange(_MOST_TYPED_ON)
        for _ in range(n_on):
            self._edit(self._gap(), self._n_chars, 0, self._chance.choice("aeinort"))
        gap = self._thought()
        for _ in range(1 + n_on):
            self._edit(gap, self._n_chars - 1, 1, "")
            gap = self._gap()
        self._edit(self._gap(), self._n_chars, 0, char)

    def _gap(self) -> float:
        return self._pause(_GAP_S, _GAP_SIGMA)

    def _gap_before_word(self) -> float:
        return self._thought() if self._chance.random() < _STOPS_TO_THINK else self._pause(_WORD_S, _WORD_SIGMA)

    def _thought(self) -> float:
        return self._pause(_THOUGHT_S, _THOUGHT_SIGMA)

    def _before_block(self) -> float:
        return self._pause(_BLOCK_S, _BLOCK_SIGMA)

    def _pause(self, median_s: float, sigma: float) -> float:
        return min(_MOST_PAUSE_S, self._chance.lognormvariate(math.log(median_s), sigma))

    def _edit(self, gap_s: float, position: int, deleted: int, inserted: str) -> None:
        self._at += gap_s if self.keys else 0.0
        self.keys.append(Key(round(self._at, 3), (Patch(position, deleted, inserted),)))
        self._n_chars += len(inserted) - deleted


def synthetic(text: str, name: str, seed: int = 0, *, language: str = "plaintext") -> Trace:
    """Somebody types `text`, whose only line end is LF, into an empty document."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    hand, lines, seen = _Hand(chance), text.split("\n"), set[tuple[str, ...]]()
    at = 0
    while at < len(lines):
        if at < len(lines) - 1 and lines[at].strip() and chance.random() < _LEFT_OUT:
            hand.leave_out(lines[at] + "\n")
            at += 1
            continue
        n_lines = _n_pasted(lines[at : at + _MOST_PASTED_LINES], seen, chance)
        if n_lines:
            hand.paste("\n".join(lines[at : at + n_lines]))
        else:
            n_lines = 1
            hand.line(lines[at])
        seen.update(tuple(lines[first : first + 2]) for first in range(max(0, at - 1), at + n_lines - 1))
        at += n_lines
        if at < len(lines):
            _end_line(hand, lines[at - 1], lines[at], chance)
    hand.finish()
    return Trace(name=name, language=language, start="", keys=tuple(hand.keys))


def _end_line(hand: _Hand, above: str, below: str, chance: random.Random) -> None:
    if hand.left and chance.random() < _GOES_BACK:
        hand.put_right()
    hand.enter(opens=not above.strip() and bool(below.strip()))


def _n_pasted(lines: Sequence[str], seen: set[tuple[str, ...]], chance: random.Random) -> int:
    """How many of the next lines come out of the clipboard; 0: they are typed."""
    known = len(lines) > 1 and tuple(lines[:2]) in seen and any(line.strip() for line in lines[:2])
    if chance.random() >= (_PASTE_AGAIN if known else _PASTE):
        return 0
    n_lines = chance.randint(2, _MOST_PASTED_LINES)
    while n_lines > 1 and not "".join(lines[n_lines - 1 : n_lines]).strip():
        n_lines -= 1  # the cursor ends behind something
    return n_lines if n_lines > 1 else 0


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"
