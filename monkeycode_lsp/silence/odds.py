"""How likely a suggestion is what the user wants, before anything is known of him (pure).

Invariant: the surer the model, the better the odds; the more it says, and in a comment, the worse.

The figures were fitted to holes in real Python code (a third of it the standard library, a third other libraries, a
third code that no model has seen), filled by Qwen2.5-Coder-0.5B.  PLACEHOLDER
"""

from __future__ import annotations

import math

_BASE = 2.32
_PER_NAT = 3.5
"""Of the mean."""
_PER_LOG_LENGTH = -0.7
_COMMENT = -2.0
_CHARACTERS = 3.5
"""Of code in one token."""
_LEAST, _MOST = 0.01, 0.99


def odds(confidence: float, text: str, *, is_comment: bool = False) -> float:
    """The chance that its first line is what would be written there, or nearly; `confidence` is the mean log-probability."""
    n_tokens = max(1.0, len(text.strip()) / _CHARACTERS)
    mean = min(0.0, confidence) if math.isfinite(confidence) else -math.inf
    score = _BASE + _PER_NAT * mean + _PER_LOG_LENGTH * math.log(n_tokens) + _COMMENT * is_comment
    return min(_MOST, max(_LEAST, 1 / (1 + math.exp(-max(-50.0, score)))))
