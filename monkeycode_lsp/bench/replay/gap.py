"""A text that is edited mostly where it was edited before: an edit costs its own length and the distance to the one before."""

from __future__ import annotations

from monkeycode_lsp.bench.replay.trace import Patch


class GapText:
    """The text before and after a gap that moves to wherever an edit happens.  LF is its only line end."""

    # The mutable state is the two halves and the number of line ends before the gap; it changes in `go` and `apply` only.

    def __init__(self, text: str) -> None:
        self._before: list[str] = []
        self._after: list[str] = list(reversed(text))
        self._line = 0

    def __len__(self) -> int:
        return len(self._before) + len(self._after)

    @property
    def text(self) -> str:
        """All of it.  Costs what the text costs."""
        return "".join(self._before) + "".join(reversed(self._after))

    @property
    def position(self) -> tuple[int, int]:
        """Line and column of the gap."""
        column = 0
        for char in reversed(self._before):
            if char == "\n":
                break
            column += 1
        return self._line, column

    def before(self, n_chars: int) -> str:
        """The last characters before the gap."""
        return "".join(self._before[-n_chars:])

    def after(self, n_chars: int) -> str:
        """The first characters behind the gap."""
        return "".join(reversed(self._after[-n_chars:]))

    def go(self, offset: int) -> None:
        """Move the gap.  `offset` lies inside the text."""
        n_moved = offset - len(self._before)
        source, target = (self._after, self._before) if n_moved > 0 else (self._before, self._after)
        if n_moved:
            moved = source[-abs(n_moved) :]
            del source[-abs(n_moved) :]
            moved.reverse()
            target.extend(moved)
            self._line += moved.count("\n") if n_moved > 0 else -moved.count("\n")

    def apply(self, patch: Patch) -> None:
        """Edit; the gap stands behind what was inserted.  The patch lies inside the text."""
        self.go(patch.position)
        if patch.deleted:
            del self._after[-patch.deleted :]
        self._before.extend(patch.inserted)
        self._line += patch.inserted.count("\n")
