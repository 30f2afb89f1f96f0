"""Rest after failures, so that a dead or busy server is not asked at every key: the circuit breaker of one server.

The first failure in a row costs nothing, since most are single; from the second on the rest grows.
While it lasts, the last error is the answer.  A rest that the server itself asked for is kept whatever else is heard.
"""

from __future__ import annotations

from collections.abc import Callable

from monkeycode_lsp.errors import EngineBusyError, EngineError, EngineFaultError, EngineUnavailableError

FIRST_S = 0.25
LONGEST_S = 1.5
"""Below two seconds: a server that has come back is used again while the user still looks."""
LONGEST_ASKED_FOR_S = 60.0
"""A server may ask for a longer rest by Retry-After, within reason."""


class Backoff:
    """When one server may be asked again.

    The mutable state is the number of failures in a row, the last one, the end of the rest, and until when the server asked
    for it; it changes in `failed` and `succeeded` only.
    """

    def __init__(self, clock: Callable[[], float], *, first_s: float = FIRST_S, longest_s: float = LONGEST_S) -> None:
        self._clock = clock
        self._first_s = first_s
        self._longest_s = longest_s
        self._n_failures = 0
        self._until = 0.0
        self._asked_until = 0.0
        self.error: EngineError | None = None
        """The last failure, unless something succeeded since."""

    @property
    def left_s(self) -> float:
        """How much of the rest is left; 0: the server may be asked."""
        return 0.0 if self.error is None else max(0.0, self._until - self._clock())

    def check(self) -> None:
        """Raises the last error while the rest lasts."""
        if self.error is not None and self._clock() < self._until:
            raise self.error.with_traceback(None)

    def failed(self, error: EngineError, *, slow: bool = False) -> None:
        """Note a failure.  `slow`: finding it out took long, so even the first one is worth a rest."""
        self._n_failures += 1
        rest_s = 0.0
        if slow or self._n_failures > 1:
            rest_s = min(self._longest_s, self._first_s * 2.0 ** min(self._n_failures - 1, 8))
        now = self._clock()
        is_asked = now < self._asked_until
        if isinstance(error, EngineBusyError) and error.retry_after_s is not None:
            self._asked_until = max(self._asked_until, now + min(error.retry_after_s, LONGEST_ASKED_FOR_S))
        elif is_asked:  # an older ask: what it ran into does not shorten the rest
            return
        self.error = error
        self._until = max(now + rest_s, self._asked_until)

    def succeeded(self) -> None:
        """Note an answer.  While the server wants to be left alone it is one to an older ask, and says nothing against that."""
        self._n_failures = 0
        if self._clock() >= self._asked_until:
            self.error = None

    def seen(self) -> None:
        """Note that the server is there.  That ends a rest after failures to reach it, and no other one."""
        if isinstance(self.error, EngineUnavailableError) and not isinstance(self.error, EngineFaultError):
            self.succeeded()
