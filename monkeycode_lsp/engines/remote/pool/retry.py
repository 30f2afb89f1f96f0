"""Whether a failed ask is tried once more, and when.  Pure.

Only what has said nothing yet is tried again.  A server that is not there is not asked twice by one ask:
the next key asks anew, and an ask that finds nothing must be over at once.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from monkeycode_lsp.errors import ContextOverflowError, EngineBusyError, EngineError

FIRST_S = 0.1
LONGEST_S = 2.0
_SPREAD = 0.1
"""Those who were told the same time come back a little apart."""


class Tried(msgspec.Struct, frozen=True):
    """How far an ask has come that failed."""

    n_left: int
    """Tries that may still be made."""
    left_s: float
    """Time that it may still take."""
    another: bool
    """Whether a server can be asked that was not asked yet."""
    rest_s: float = 0.0
    """How long those that were too busy still rest, the shortest."""
    n_waits: int = 0
    """How often it has waited for the same ones."""


def wait_s(error: EngineError, tried: Tried, draw: Callable[[], float]) -> float | None:
    """Seconds until the next try; None: there is none, and `error` is the answer.  `draw` gives a number from 0 to 1."""
    if tried.n_left <= 0 or tried.left_s <= 0 or isinstance(error, ContextOverflowError):
        return None
    if tried.another:
        return 0.0
    if not isinstance(error, EngineBusyError):
        return None
    if error.retry_after_s is not None:
        wait = max(tried.rest_s, FIRST_S) * (1 + _SPREAD * draw())
    elif tried.rest_s > 0:
        return None  # it was busy more than once and does not say for how long: the next key asks again
    else:
        wait = draw() * min(LONGEST_S, FIRST_S * 2.0**tried.n_waits)
    return wait if wait < tried.left_s else None
