"""The seam between an endpoint and the API that its server speaks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from monkeycode_lsp.domain import Finish, Priority, Sampling, Usage
from monkeycode_lsp.prompt import Family


class Call(msgspec.Struct, frozen=True):
    """One completion to ask for: the prompt as the server will read it."""

    text: str
    suffix: str | None = None
    """What follows, for servers that insert by themselves; None: `text` says it all."""
    is_marked: bool = False
    """Whether `text` holds the model's own markers, so that the server must put it into no template."""
    stop: tuple[str, ...] = ()
    max_tokens: int = 96
    sampling: Sampling = Sampling()
    model: str = ""
    priority: Priority = Priority.INTERACTIVE
    session: str = ""
    """The same for every call of one document, and it tells nobody which: a digest."""
    slot: int | None = None
    """Which of the server's slots holds the document; None: any."""

    @property
    def sent(self) -> tuple[str, ...]:
        """The user's own texts in it, which a refusal may repeat."""
        return (self.text,) if self.suffix is None else (self.text, self.suffix)


class Piece(msgspec.Struct, frozen=True):
    """What one event says."""

    text: str = ""
    n_tokens: int = 0
    logprob: float | None = None
    """Of these tokens together."""
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
    """How prompts are marked; None: it is not known, or the server has to put in the markers by itself."""
    context_tokens: int | None = None
    inserts: bool | None = None
    """Whether the model fills in when it gets both halves without markers; None: the server does not say."""
    slots: int = 0
    """How many prompts the server keeps side by side, each where it can be asked for; 0: it does not say."""
    without: frozenset[str] = frozenset()
    """Optional fields of the body that this server is better asked without."""
    load: tuple[str, bytes] | None = None
    """Path and body of a POST that has the model loaded and is answered when it is; None: it is never unloaded."""


Fetch = Callable[[str, bytes | None], Awaitable[bytes | None]]
"""GET a path, or POST it with a body.  None: the server has no such route.  Raises an `EngineError`."""


class Dialect(Protocol):
    """One API.  Holds no state: what a server refused is the endpoint's memory, and given to `body` as `without`."""

    @property
    def name(self) -> str:
        """The word of the setting `api`."""
        ...

    @property
    def inserts(self) -> bool:
        """Whether the API has a field for the text after the cursor."""
        ...

    @property
    def marks(self) -> bool:
        """Whether prompts with the model's markers are taken; else both halves are given as they are."""
        ...

    @property
    def optional(self) -> frozenset[str]:
        """Top-level fields of the body that a server may refuse by name, and then does without.  `suffix` is not among them."""
        ...

    @property
    def confidence(self) -> str:
        """The optional field that asks for log-probabilities; empty: they would cost too much, or it is not known that they are given."""
        ...

    @property
    def lines(self) -> bool:
        """Whether a stream is one JSON document a line instead of server-sent events."""
        ...

    def path(self, call: Call) -> str:
        """The route that completes it."""
        ...

    def body(self, call: Call, without: frozenset[str] = frozenset()) -> bytes:
        """The request's body, without the fields that this server has refused."""
        ...

    def read(self, data: bytes) -> Piece:
        """One event, or a whole body that is not a stream.  Raises `msgspec.DecodeError` if it cannot be read."""
        ...

    async def identify(self, fetch: Fetch, model: str) -> Identity:
        """Which model answers; `model` is the one that the user named, or empty.  Asks only if it must."""
        ...
