"""OpenAI's `/v1/completions`, which nearly every server of models offers, and what its relatives share with it.

A relative derives from `OpenAI` and says what differs: the fields it knows more, the route, who it is.
The reader understands both forms of an event, the one with `text` and the chat's with `delta`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from monkeycode_lsp import prompt
from monkeycode_lsp.domain import Finish, Usage
from monkeycode_lsp.engines.remote import facts
from monkeycode_lsp.engines.remote.dialects import choice
from monkeycode_lsp.engines.remote.dialects.base import Call, Fetch, Identity, Piece
from monkeycode_lsp.errors import EngineRefusedError

MODELS = "/v1/models"

MOST_STOPS = 4
"""More are refused by OpenAI and by servers that copy it; the rest is applied on our side."""

_FINISH = {
    "length": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "model_length": Finish.LENGTH,
    **dict.fromkeys(
        ("abort", "error", "cancelled", "timeout", "content_filter", "insufficient_system_resource"),
    ),
}
"""None: the server gave up.  Any other word means that the model was done."""

_LEAST_LOGPROB = -100.0
"""Servers write -9999 for minus infinity."""

Fields = dict[str, object]
"""Of a request's body; None: not sent."""


class _Part(msgspec.Struct):
    type: str = "text"
    text: str | None = None


class _Said(msgspec.Struct):
    """What a chat's model says; its thoughts (`reasoning_content`, `reasoning`) are left where they are."""

    content: str | list[_Part] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "".join(part.text or "" for part in self.content if part.type == "text")
        return self.content or ""


class _Logprob(msgspec.Struct):
    logprob: Any = None


class _Logprobs(msgspec.Struct):
    """In the form of completions, or in that of chats."""

    token_logprobs: list[Any] | None = None
    content: list[_Logprob] | None = None


class _Choice(msgspec.Struct):
    text: str | None = None
    index: int | None = 0
    finish_reason: str | None = None
    delta: _Said | None = None
    message: _Said | None = None
    """In place of `delta` where a server does not stream."""
    logprobs: msgspec.Raw = msgspec.Raw(b"null")


class _Details(msgspec.Struct):
    cached_tokens: Any = None


class _Usage(msgspec.Struct):
    prompt_tokens: Any = None
    completion_tokens: Any = None
    prompt_tokens_details: _Details | None = None
    prompt_cache_hit_tokens: Any = None
    """DeepSeek's word for it."""


class _Event(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: msgspec.Raw = msgspec.Raw(b"null")
    error: msgspec.Raw = msgspec.Raw(b"null")
    detail: msgspec.Raw = msgspec.Raw(b"null")
    """What web frameworks call their errors."""
    object: str | None = None


class Card(msgspec.Struct, frozen=True):
    """A model in the server's list."""

    id: str
    owned_by: str = ""
    root: str = ""
    """What vLLM and SGLang have loaded under this name."""
    parent: str = ""
    """The model that an adapter adapts."""
    max_model_len: int | None = None


class _Card(msgspec.Struct):
    """The same, as a server may write it."""

    id: Any = None
    owned_by: Any = None
    root: Any = None
    parent: Any = None
    max_model_len: Any = None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Event).decode


class OpenAI:
    """Completions in OpenAI's form."""

    name = "openai"
    inserts = True
    marks = True
    lines = False
    confidence = ""
    """Some of the servers that copy it answer with an error of their own to a field that they could as well refuse."""
    optional = frozenset({"stream_options", "top_p", "stop", "seed"})

    def path(self, call: Call) -> str:  # noqa: ARG002 - the same for every call
        """See `Dialect.path`."""
        return "/v1/completions"

    def body(self, call: Call, without: frozenset[str] = frozenset()) -> bytes:
        """See `Dialect.body`."""
        return _encode({name: value for name, value in self.fields(call).items() if value is not None and name not in without})

    def fields(self, call: Call) -> Fields:
        """Everything that this server may be told."""
        sampling = call.sampling
        return {
            "model": call.model or None,
            "prompt": call.text,
            "suffix": call.suffix,
            "max_tokens": call.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p if sampling.top_p < 1 else None,
            "seed": sampling.seed,
            "stop": call.stop[:MOST_STOPS] or None,
            "stream": True,
            "stream_options": {"include_usage": True},
        }

    def read(self, data: bytes) -> Piece:
        """See `Dialect.read`."""
        event = _decode(data)
        error = bytes(event.error)
        if error != b"null":
            return Piece(error=error)
        if event.object == "error":  # older vLLM: the event itself is the error
            return Piece(error=data)
        usage = _usage(bytes(event.usage))
        if event.choices is None:
            detail = bytes(event.detail)
            return Piece(usage=usage, answer=usage is not None) if detail == b"null" else Piece(error=detail)
        choice = next((choice for choice in event.choices if not choice.index), None)
        if choice is None:
            return Piece(usage=usage)
        finish, broken = None, False
        if choice.finish_reason:
            finish = _FINISH.get(choice.finish_reason, Finish.STOP)
            broken = finish is None
        said = choice.delta or choice.message
        n_tokens, logprob = _confidence(bytes(choice.logprobs))
        text = choice.text or (said.text if said else "")
        return Piece(text=text, n_tokens=n_tokens, logprob=logprob, finish=finish, broken=broken, usage=usage)

    async def identify(self, fetch: Fetch, model: str) -> Identity:
        """See `Dialect.identify`."""
        family = prompt.by_name(model) if model else None
        if family:
            return Identity(model, family)
        return identity(await listed(fetch, model), model)


def cards(body: bytes | None) -> list[Card]:
    """The list of models; empty if it is none: not every server has one, and the completion itself will tell more."""
    return [
        Card(name, facts.name(card.owned_by), facts.name(card.root), facts.name(card.parent), facts.window(card.max_model_len))
        for card in facts.entries(body, "data", _Card) or []
        if (name := facts.name(card.id))
    ]


async def listed(fetch: Fetch, model: str) -> list[Card]:
    """The server's models.  One that is named can be asked without the list, so there a refusal does not matter."""
    try:
        return cards(await fetch(MODELS, None))
    except EngineRefusedError:
        if not model:
            raise
        return []


def identity(known: list[Card], model: str) -> Identity:
    """Who answers: the model that the user named, else the best one in the list.

    A name that tells no family may stand for a model whose name does, or for an adapter of one.
    """
    by_id = {card.id: card for card in reversed(known)}

    def names(card: Card) -> tuple[str, ...]:
        base = by_id.get(card.parent)
        return (card.id, card.root, card.parent, base.root if base else "")

    card = by_id.get(model) if model else choice.best(known, names)
    if card is None:  # a name that only a gateway knows, or one that does not exist: the completion will tell
        return Identity(model, prompt.by_name(model) if model else None)
    base = by_id.get(card.parent)
    family = next(filter(None, (prompt.by_name(name) for name in names(card) if name)), None)
    return Identity(card.id, family, card.max_model_len or (base.max_model_len if base else None))


def _confidence(told: bytes) -> tuple[int, float | None]:
    """How many tokens have a log-probability, and their sum."""
    said = facts.read(told, _Logprobs)
    if said is None:
        return 0, None
    each = said.token_logprobs or [token.logprob for token in said.content or []]
    known = [float(max(_LEAST_LOGPROB, min(0, one))) for one in each if isinstance(one, int | float)]
    return len(known), sum(known) if known else None


def _usage(told: bytes) -> Usage | None:
    usage = facts.read(told, _Usage)
    if usage is None:
        return None
    details = usage.prompt_tokens_details
    reused = facts.count(details.cached_tokens if details else usage.prompt_cache_hit_tokens)
    whole = facts.count(usage.prompt_tokens)
    read = None if whole is None else max(0, whole - (reused or 0))
    # Nothing is not all of a prompt: some servers leave out of it what they had in their cache.
    return Usage(
        reused=reused, read=read, generated=facts.count(usage.completion_tokens), whole=whole if reused is None and whole else None
    )
