"""What the batch loop needs of a model: tokens in, rows of logits out.  The seam to the native library.

A runtime has `n_sequences` KV caches (sequences) of `context_tokens` each, numbered from 0.  All of it is
called from one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from monkeycode_lsp.engines.local.wire import Generate


class Row(NamedTuple):
    """One token of a batch."""

    token: int
    position: int
    sequence: int
    wanted: bool
    """Whether a token is to be drawn after it."""


class Vocabulary(Protocol):
    """A model's tokens."""

    bos: int | None
    """The token that the model wants in front of everything; None: it wants none."""
    filler: int
    """Read where a prompt is empty: a model cannot answer nothing."""

    def tokenize(self, text: str) -> list[int]:
        """Tokens of plain text."""
        ...

    def control(self, text: str) -> int:
        """The control token of this text.  Raises `GenerationError` if there is none."""
        ...

    def piece(self, token: int) -> bytes:
        """A token's bytes; none for control tokens."""
        ...

    def ends(self, token: int) -> bool:
        """Whether the answer is over with this token: an end-of-generation token or any other control token."""
        ...

    def fitting(self, text: bytes) -> Sequence[int]:
        """The tokens that begin with `text` or that `text` begins with, without control tokens; never none for text."""
        ...


class Sampler(Protocol):
    """Draws the tokens of one answer, in order."""

    def draw(self, row: int, among: Sequence[int] | None = None) -> tuple[int, float]:
        """The token after row number `row` of the last batch, and its log-probability by the model at temperature 1.

        `among`: the only tokens that may be drawn, and among which it is as likely as that.  A token that is drawn counts as said.
        """
        ...

    def close(self) -> None:
        """Give its memory back."""
        ...


class Runtime(Vocabulary, Protocol):
    """One model with its KV caches."""

    context_tokens: int
    n_sequences: int
    batch_tokens: int
    """Most rows of one batch."""

    def decode(self, rows: Sequence[Row], should_stop: Callable[[], bool]) -> bool:
        """Read a batch; the rows of one sequence are in order and follow what it holds.

        False: stopped, and each sequence holds what it held or a part of the batch; the caller cuts it back
        with `keep`.  Raises `GenerationError`; the sequences of the batch are then undefined.
        """
        ...

    def keep(self, sequence: int, n_tokens: int) -> bool:
        """Drop everything from position `n_tokens` on; False: it could not, and everything is dropped."""
        ...

    def sampler(self, ask: Generate) -> Sampler:
        """For one answer.  Raises `GenerationError` for a grammar that cannot be read."""
        ...

    def save(self, sequence: int) -> bytes:
        """What a sequence holds, to be restored into any sequence of the same model and settings."""
        ...

    def restore(self, sequence: int, state: bytes) -> bool:
        """Make a sequence hold what was saved; False: it is of no use here, and the sequence is empty."""
        ...
