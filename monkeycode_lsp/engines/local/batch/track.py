"""Where an answer is in the text that it was expected to say.  Pure.

It is followed byte by byte, because a model may cut the same text into other tokens than the tokenizer does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

_CLUE_TOKENS = 3
"""So many last tokens must be found further on, for an answer that left the text to be back in it …"""
_CLUE_BYTES = 4
"""… with so many bytes that are no white space: indentation is everywhere."""
_CONTINUATION = (0x80, 0xBF)


class Track:
    """Follows one answer along one text."""

    def __init__(self, text: str, tokenize: Callable[[str], list[int]], piece: Callable[[int], bytes]) -> None:
        # The mutable state changes in `said`: the place in the text, whether the answer is on it, what was said
        # last; and in `expected`, which cuts the rest of the text into tokens when it is asked for.
        self._text = text.encode("utf-8", errors="replace")
        self._tokenize = tokenize
        self._piece = piece
        self._at = 0
        self._is_on = bool(text)
        self._rest: list[int] | None = None
        self._n_used = 0
        self._last: deque[bytes] = deque(maxlen=_CLUE_TOKENS)
        self.agreed = 0
        """Tokens in a row that were the text's."""

    def expected(self, n: int) -> list[int]:
        """The next tokens, at most `n`; none while the answer is elsewhere, or inside a character."""
        if not self._is_on or n < 1:
            return []
        if self._rest is None:
            if self._is_inside_character():
                return []
            self._rest = self._tokenize(self._text[self._at :].decode("utf-8"))
            self._n_used = 0
        return self._rest[self._n_used : self._n_used + n]

    def said(self, token: int) -> None:
        """Follow the answer by one token."""
        piece = self._piece(token)
        if not piece:
            return
        self._last.append(piece)
        if not self._is_on:
            self._find_again()
        elif self._text.startswith(piece, self._at):
            self._at += len(piece)
            self.agreed += 1
            if self._rest is not None and self._rest[self._n_used : self._n_used + 1] == [token]:
                self._n_used += 1
            else:
                self._rest = None
        else:
            self._leave()

    def _leave(self) -> None:
        self._is_on = False
        self._rest = None
        self.agreed = 0

    def _find_again(self) -> None:
        """Look whether the answer is back in the text, after what it left out or put in; trust begins anew then."""
        clue = b"".join(self._last)
        if len(self._last) < _CLUE_TOKENS or len(b"".join(clue.split())) < _CLUE_BYTES:
            return
        found = self._text.find(clue, self._at)
        if found >= 0:
            self._at = found + len(clue)
            self._is_on = True

    def _is_inside_character(self) -> bool:
        low, high = _CONTINUATION
        return self._at < len(self._text) and low <= self._text[self._at] <= high
