"""One endpoint as the pool sees it: what it serves, what it does now, and whether it can be trusted."""

from __future__ import annotations

import enum
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Protocol

from monkeycode_lsp.domain import Chunk, Prompt
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.engines.remote.backoff import Backoff
from monkeycode_lsp.engines.remote.pool.latency import Latencies
from monkeycode_lsp.errors import EngineError

LEFT_OUT_S = 60.0
"""So long a server is left alone that refused what others took."""
_SILENT_S = 1.0
_SILENT = 4.0
"""Times its usual time: a server that says nothing for so long is not what it was."""
_TRIED_AGAIN_S = 30.0
"""So long after its last ask one that is much slower than others gets another: a slow answer in so long is bearable."""
_OFTEN = 2
"""Nor is one that was given up so often in a row after more than its usual time; by chance that is one case in 400."""


class Server(Protocol):
    """What the pool needs of an endpoint."""

    backoff: Backoff

    async def ready(self) -> Model:
        """Which model it serves; see `Endpoint.ready`."""
        ...

    def stream(self, asked: Prompt) -> AsyncGenerator[Chunk, None]:
        """One answer; closing it stops the server."""
        ...

    def keep_warm(self) -> None:
        """See to it that a connection lies ready; see `Endpoint.keep_warm`."""
        ...

    async def look(self, path: str) -> bytes | None:
        """What it says at another path; None: nothing of the kind.  Raises an `EngineError`."""
        ...

    async def aclose(self) -> None: ...


class Standing(enum.IntEnum):
    """How much a server is trusted; lower is asked first."""

    GOOD = 0
    SUSPECT = 1
    """It failed since its last answer: at most one ask at a time is risked on it."""
    LEFT_OUT = 2
    """It refuses what others take."""


class Member:
    """One server of a pool."""

    # The mutable state is its model once it is known, the asks that it has, when it was given the last one, and what went wrong
    # since its last answer; the admission counts asks, the roster knows models, the methods here change the rest.

    def __init__(
        self, server: Server, *, base: str, weight: float = 1.0, metered: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.server = server
        self.base = base
        self.weight = weight
        """1: as much as others on average."""
        self.metered = metered
        self.model: Model | None = None
        self.n_asked = 0
        """Asks that it has now."""
        self.neighbours: Sequence[Member] = (self,)
        """All members at the same server, this one among them: they share its places."""
        self.n_served = 0.0
        """Asks that it was given so far; only compared with other members."""
        self.latencies = Latencies()
        self._given_at = 0.0
        self.error: EngineError | None = None
        """The last failure, unless there was an answer since."""
        self._clock = clock
        self._is_suspect = False
        self._n_silent = 0
        self._left_out_until: float | None = None

    @property
    def standing(self) -> Standing:
        if self._left_out_until is not None and self._clock() < self._left_out_until:
            return Standing.LEFT_OUT
        return Standing.SUSPECT if self._is_suspect else Standing.GOOD

    @property
    def is_resting(self) -> bool:
        return self.server.backoff.left_s > 0

    @property
    def is_good(self) -> bool:
        """Whether it can be asked and nothing speaks against it."""
        return not self.is_resting and self.standing is Standing.GOOD

    @property
    def n_taken(self) -> int:
        """Places at its server that are taken now, by whomever."""
        return sum(member.n_asked for member in self.neighbours)

    @property
    def is_worth_a_try(self) -> bool:
        """Whether it was left alone so long, for being slow, that it may be another one by now."""
        return self.n_asked == 0 and self._clock() >= self._given_at + _TRIED_AGAIN_S

    def given(self) -> None:
        """It gets an ask."""
        self.n_asked += 1
        self.n_served += 1
        self._given_at = self._clock()

    def answered(self) -> bool:
        """It has said something.  Whether it was not trusted before."""
        self._n_silent = 0
        was_suspect, self._is_suspect = self._is_suspect, False
        self.error, self._left_out_until = None, None
        return was_suspect

    def failed(self, error: EngineError) -> None:
        self.error = error
        self._is_suspect = True

    def was_silent(self, for_s: float) -> None:
        """It was given up after so long without a word, for whatever reason."""
        usual_s = self.latencies.usual_s()
        self.latencies.silent(for_s)
        if usual_s is not None and for_s > usual_s:
            self._n_silent += 1
        if self._n_silent >= _OFTEN or for_s > max(_SILENT_S, _SILENT * (usual_s or 0.0)):
            self._is_suspect = True

    def leave_out(self, error: EngineError) -> None:
        """Others take what it refuses."""
        self.failed(error)
        self._left_out_until = self._clock() + LEFT_OUT_S

    def came_back(self) -> None:
        """A look at it went well.  One that wants to be left alone is not trusted before that is over."""
        self.server.backoff.seen()
        if not self.is_resting:
            self.answered()
