"""How much of the budget a window and its snippets may use: what the model takes, and what this machine reads in time."""

from __future__ import annotations

from monkeycode_lsp import config
from monkeycode_lsp.errors import ContextOverflowError

READ_S = 2.0
"""A prompt that nothing is known of should be read in so long; a slow processor gets a smaller window."""
_LEAST = 0.15
_MUCH = 1.5
"""The window changes by no less: each change makes the engine read it anew."""
_SHRINK = 0.4
"""Of a window that was too large; less than half, because the next one may use its budget better."""
_FEW_TOKENS = 64
_TELLING_TOKENS = 64
"""So many tokens read tell the speed."""


class Scale:
    """Shrinks at once; grows with the next document only, because the KV cache of this one would be of no use any more."""

    # The mutable state is the limits and the document that is worked on; it changes in the methods below only.

    def __init__(self, settings: config.Config, *, read_s: float = READ_S) -> None:
        wanted = settings.context
        self._window_tokens = wanted.prefix_tokens + wanted.suffix_tokens
        self._snippet_tokens = wanted.snippet_tokens
        self._wanted_tokens = self._window_tokens + self._snippet_tokens
        self._max_tokens = settings.completion.max_tokens
        self._read_s = read_s
        self._model = 1.0
        self._speed = self._larger = 1.0
        self._uri = ""

    @property
    def value(self) -> float:
        """Of the budget, at most 1."""
        return min(self._model, self._speed)

    @property
    def window(self) -> float:
        """Of the window's budget.  What is near the cursor says more than other files do, so they give way first."""
        return min(1.0, self.value * self._wanted_tokens / self._window_tokens)

    @property
    def snippets(self) -> float:
        """Of the snippets' budget; 0: what is left is too little for any."""
        left = self.value * self._wanted_tokens - self._window_tokens
        return left / self._snippet_tokens if left >= _FEW_TOKENS else 0.0

    def working_on(self, uri: str) -> None:
        """The document of the newest ask."""
        if uri != self._uri:
            self._uri, self._speed = uri, self._larger

    def overflowed(self, error: ContextOverflowError) -> bool:
        """Remember that the window must be smaller; whether another try makes sense."""
        scale = self.value * _SHRINK
        if error.limit_tokens is not None:
            scale = min(scale, 0.8 * (error.limit_tokens - self._max_tokens) / self._wanted_tokens)
        if scale <= 0.01:  # noqa: PLR2004 - a hundredth of the budget is no window any more
            return False
        self._model = scale
        return True

    def learn(self, n_read: int | None, first_ms: float) -> None:
        """How fast this engine reads: `n_read` prompt tokens until its first text came.  Changes in large steps only."""
        if n_read is None or n_read < _TELLING_TOKENS:
            return
        scale = self._read_s * n_read / (first_ms / 1e3) / self._wanted_tokens
        scale = min(1.0, max(_LEAST, scale))
        if scale < self._speed / _MUCH:
            self._speed = self._larger = scale
        elif scale > self._speed * _MUCH:
            self._larger = scale
