"""On which terms one server completes: its API, and what of it this server has refused.

A refusal that names what it does not take is an answer: the call is made again without that, and so are all later ones.
"""

from __future__ import annotations

from collections.abc import Callable

from monkeycode_lsp import config
from monkeycode_lsp.engines.remote import dialects, probe, refusal
from monkeycode_lsp.engines.remote.address import Address
from monkeycode_lsp.engines.remote.dialects.base import Call, Dialect, Fetch

Notify = Callable[[str], None]
"""Tells the user something that is no failure, in one or two sentences."""

_NO_SUCH_ROUTE = frozenset({404, 405, 501})
_COMMON = frozenset({"openai", "vllm", "sglang", "tensorrt-llm"})
"""APIs whose servers may have the route for chats without the one for completions."""


class Terms:
    """Of one server."""

    # The mutable state is the dialect once it is known, the fields that were refused, whether the server inserts, whether
    # it has ever completed in this way, and what the user was told; it changes in the methods but `_refuses_suffix` only.

    def __init__(self, settings: config.Endpoint, address: Address, notify: Notify) -> None:
        self._chosen = dialects.choose(settings, address)
        self._address = address
        self._notify = notify
        self._told: set[str] = set()
        self.forget()

    def forget(self) -> None:
        """Another server may stand there by now: nothing is known but what the user says of it."""
        self._before_chat: Dialect | None = None
        self._has_worked = False
        self.dialect: Dialect | None = self._chosen
        self.without: frozenset[str] = frozenset()
        self.may_insert = True

    async def settle(self, fetch: Fetch) -> Dialect:
        """The server's API, asked for if it must be.  Raises an `EngineError`."""
        if self.dialect is None:
            self.dialect = await probe.find(fetch, self._address)
        return self.dialect

    def identified(self, *, inserts: bool | None, without: frozenset[str] = frozenset()) -> None:
        """What the server says of its model."""
        self.without |= without
        if self.dialect is not None:
            self.may_insert = self.dialect.inserts and inserts is not False

    def learn(self, call: Call, status: int, body: bytes) -> bool:
        """Whether the call may be made once more in another form."""
        dialect = self.dialect
        if dialect is None:
            return False
        if call.suffix is not None and self._refuses_suffix(dialect, call, status, body):
            self.may_insert = False
            return True
        refused = refusal.refused_fields(status, body, dialect.optional - self.without, sent=call.sent)
        if refused:
            self.without |= refused
            return True
        if self._may_only_chat(dialect, call, status, body):
            self._before_chat, self.dialect = dialect, dialects.by_name("chat")
            return True
        return False

    @property
    def tells_confidence(self) -> bool:
        """Whether log-probabilities are asked for, as far as is known."""
        return self.dialect is not None and bool(self.dialect.confidence) and self.dialect.confidence not in self.without

    @property
    def is_open(self) -> bool:
        """Whether the server was asked which API it speaks."""
        return self._chosen is None

    def failed(self) -> None:
        """No form of the call was taken: what was only tried is given up."""
        if self._before_chat is not None and "chat" not in self._told:
            self.dialect, self._before_chat = self._before_chat, None

    def works(self, where: refusal.Where, *, is_cut: bool) -> None:
        """An answer has begun; the user hears once what is not as good as it could be."""
        self._has_worked = True
        model = f"The model {where.model}" if where.model else "The model"
        if self._before_chat is not None:
            self._tell(
                "chat",
                f"The server at {where.base} only chats: it is asked to fill in the gap by words, which is slower and less good. "
                "A server with an OpenAI-compatible /v1/completions and a code model does better.",
            )
        if is_cut:
            self._tell(
                "insert",
                f"{model} at {where.base} cannot fill in the middle: it sees only the text before the cursor. "
                "Choose a code model that can, or set `template` if you know its markers.",
            )

    def _may_only_chat(self, dialect: Dialect, call: Call, status: int, body: bytes) -> bool:
        """One that has completed before can do more than chat: the route is missing for a moment, or another server is there."""
        if self._chosen is not None or self._has_worked or self._before_chat is not None:
            return False
        return status in _NO_SUCH_ROUTE and dialect.name in _COMMON and not refusal.about_model(status, body, sent=call.sent)

    def _refuses_suffix(self, dialect: Dialect, call: Call, status: int, body: bytes) -> bool:
        if refusal.about_suffix(status, body, sent=call.sent):
            return True
        # A route of its own for inserting, which this model or this server does not have.
        without = Call(call.text, is_marked=call.is_marked)
        return status in _NO_SUCH_ROUTE and dialect.path(call) != dialect.path(without)

    def _tell(self, what: str, words: str) -> None:
        if what not in self._told:
            self._told.add(what)
            self._notify(words)
