"""The seam between an endpoint and the API that its server speaks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from monkeycode_lsp.domain import Finish, Sampling, Usage
from monkeycode_lsp.prompt import Family


class Call(msgspec.Struct, frozen=True):
    """One completion to ask for: the prompt as the server will read it."""

    text: str
    suffix: str | None = None
    """What follows, for servers that insert by themselves; None: `text` says it all."""
    stop: tuple[str, ...] = ()
    max_tokens: int = 96
    sampling: Sampling = Sampling()
    model: str = ""


class Piece(msgspec.Struct, frozen=True):
    """What one event says."""

    text: str = ""
    n_tokens: int = 0
    logprob: float | None = None
    finish: Finish | None = None
    usage: Usage | None = None
    last: bool = False
    """Nothing follows this event."""
    broken: bool = False
    """The server says that it gave up."""
    error: bytes | None = None
    """An error object in place of an answer, as JSON."""
    answer: bool = True
    """False: this is no completion at all, whatever it is."""


class Identity(msgspec.Struct, frozen=True):
    """What a server says of itself."""

    model: str
    family: Family | None
    context_tokens: int | None = None


Fetch = Callable[[str, bytes | None], Awaitable[bytes | None]]
"""GET a path, or POST it with a body.  None: the server has no such route.  Raises an `EngineError`."""


class Dialect(Protocol):
    """One API.  Holds no state."""

    @property
    def name(self) -> str:
        """The word of the setting `api`."""
        ...

    @property
    def path(self) -> str:
        """The route that completes."""
        ...

    @property
    def inserts(self) -> bool:
        """Whether the API has a field for the text after the cursor."""
        ...

    def body(self, call: Call) -> bytes:
        """The request's body."""
        ...

    def read(self, data: bytes) -> Piece:
        """One event, or a whole body that is not a stream.  Raises `msgspec.DecodeError` if it cannot be read."""
        ...

    async def identify(self, fetch: Fetch, model: str) -> Identity:
        """Which model answers; `model` is the one that the user named, or empty.  Asks only if it must."""
        ...
