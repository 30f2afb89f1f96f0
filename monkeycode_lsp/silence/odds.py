"""How likely a suggestion is what the user wants, before anything is known of him (pure).

The mean log-probability of the tokens says most of it, the length nearly all of the rest: the longer an answer, the
more can be wrong in it.  The least sure token and the first one add nothing to these two.

Where the figures come from: PLACEHOLDER
"""

from __future__ import annotations

import math

_BASE = 2.4
_PER_NAT = 3.2
"""Of the mean."""
_PER_LOG_LENGTH = -0.9
_CHARACTERS = 3.5
"""Of code in one token."""
_LEAST, _MOST = 0.01, 0.99


def odds(confidence: float, text: str) -> float:
    """The chance that its first line is just what would be written there."""
    n_tokens = max(1.0, len(text.strip()) / _CHARACTERS)
    mean = min(0.0, confidence) if math.isfinite(confidence) else -math.inf
    score = max(-50.0, _BASE + _PER_NAT * mean + _PER_LOG_LENGTH * math.log(n_tokens))
    return min(_MOST, max(_LEAST, 1 / (1 + math.exp(-score))))
