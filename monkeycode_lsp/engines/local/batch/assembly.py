"""Token bytes → text that may be shown.  Pure.

Text never holds half a character, and never any part of a stop string, even one that arrives in pieces.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class Assembler:
    """The text of one answer, from the bytes of its tokens."""

    def __init__(self, stop: Sequence[str] = ()) -> None:
        # The mutable state is the decoder's half character and `_held`, the text that may still turn out
        # to be the beginning of a stop string; both change in `feed` and `finish` only.
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="ignore")
        self._stop = tuple(text for text in stop if text)
        self._held = ""
        self.stopped = False
        """Whether a stop string came; what is fed after it is not looked at."""

    def feed(self, data: bytes) -> str:
        """The text that has become certain; may be empty."""
        if self.stopped:
            return ""
        text = self._held + self._decoder.decode(data)
        cut = min((at for at in map(text.find, self._stop) if at >= 0), default=-1)
        if cut >= 0:
            self.stopped = True
            self._held = ""
            return text[:cut]
        keep = max((_overlap(text, stop) for stop in self._stop), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def finish(self) -> str:
        """What was held back and is text after all.  A character that never became whole is dropped."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that `stop` begins with."""
    for n in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:n]):
            return n
    return 0
