"""How likely a suggestion is what the user wants, before anything is known of him (pure).

Invariant: the surer the model, the better the odds; the more it says, and in a comment, the worse.

The figures were fitted to 231 answers of Qwen2.5-Coder-0.5B to holes in real Python code: a third of it the standard library,
a third other libraries, a third code that no model has seen.  Of two answers, a good and a bad one, the good one has the
better odds in 83 % of cases (cross-validated); by the mean alone in 73 %.  The least sure token and the first one add next to
nothing to these three.
"""

from __future__ import annotations

import math

_BASE = 2.4
_PER_NAT = 3.5
"""Of the mean."""
_PER_LOG_LENGTH = -0.9
_COMMENT = -1.6
_CHARACTERS = 3.5
"""Of code in one token."""
_LEAST, _MOST = 0.01, 0.99


def odds(confidence: float, text: str, *, is_comment: bool = False) -> float:
    """The chance that its first line is what would be written there, or nearly; `confidence` is the mean log-probability."""
    n_tokens = max(1.0, len(text.strip()) / _CHARACTERS)
    mean = min(0.0, confidence) if math.isfinite(confidence) else -math.inf
    score = _BASE + _PER_NAT * mean + _PER_LOG_LENGTH * math.log(n_tokens) + _COMMENT * is_comment
    return min(_MOST, max(_LEAST, 1 / (1 + math.exp(-max(-50.0, score)))))
