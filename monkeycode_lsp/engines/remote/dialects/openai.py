"""OpenAI's `/v1/completions`, which nearly every server of models offers, and what its relatives share with it.

A relative derives from `OpenAI` and says what differs: the fields it knows more, the route, who it is.
The reader understands both forms of an event, the one with `text` and the chat's with `delta`.
"""

from __future__ import annotations

import msgspec

from monkeycode_lsp import prompt
from monkeycode_lsp.domain import Finish, Usage
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


class _Choice(msgspec.Struct):
    text: str | None = None
    index: int | None = 0
    finish_reason: str | None = None
    delta: _Said | None = None
    message: _Said | None = None
    """In place of `delta` where a server does not stream."""


class _Details(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    prompt_cache_hit_tokens: int | None = None
    """DeepSeek's word for it."""


class _Event(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: msgspec.Raw = msgspec.Raw(b"null")
    detail: msgspec.Raw = msgspec.Raw(b"null")
    """What web frameworks call their errors."""
    object: str | None = None


class Card(msgspec.Struct, frozen=True):
    """A model in the server's list."""

    id: str
    owned_by: str | None = None
    root: str | None = None
    """What vLLM and SGLang have loaded under this name."""
    parent: str | None = None
    """The model that an adapter adapts."""
    max_model_len: int | None = None


class _Cards(msgspec.Struct):
    data: list[Card] | None = None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Event).decode
_decode_cards = msgspec.json.Decoder(_Cards).decode


class OpenAI:
    """Completions in OpenAI's form."""

    name = "openai"
    inserts = True
    marks = True
    lines = False
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
        usage = _usage(event.usage) if event.usage else None
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
        return Piece(text=choice.text or (said.text if said else ""), finish=finish, broken=broken, usage=usage)

    async def identify(self, fetch: Fetch, model: str) -> Identity:
        """See `Dialect.identify`."""
        family = prompt.by_name(model) if model else None
        if family:
            return Identity(model, family)
        return identity(await listed(fetch, model), model)


def cards(body: bytes | None) -> list[Card]:
    """The list of models; empty if it is none."""
    try:
        return _decode_cards(body).data or [] if body else []
    except msgspec.DecodeError:
        return []  # not every server has this list; the completion itself will tell more


async def listed(fetch: Fetch, model: str) -> list[Card]:
    """The server's models.  One that is named can be asked without the list, so there a refusal does not matter."""
    try:
        return cards(await fetch(MODELS, None))
    except EngineRefusedError:
        if not model:
            raise
        return []


def identity(known: list[Card], model: str) -> Identity:
    """Who answers: the model that the user named, else the first one in the list.

    A name that tells no family may stand for a model whose name does, or for an adapter of one.
    """
    card = next((card for card in known if card.id == model or not model), None)
    if card is None:  # a name that only a gateway knows, or one that does not exist: the completion will tell
        return Identity(model, prompt.by_name(model) if model else None)
    base = next((other for other in known if other.id == card.parent), None)
    names = (card.id, card.root, card.parent, base.root if base else None)
    family = next(filter(None, (prompt.by_name(name) for name in names if name)), None)
    return Identity(card.id, family, card.max_model_len or (base.max_model_len if base else None))


def _usage(usage: _Usage) -> Usage:
    reused = usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details else usage.prompt_cache_hit_tokens
    read = None if usage.prompt_tokens is None else usage.prompt_tokens - (reused or 0)
    return Usage(reused=reused, read=read, generated=usage.completion_tokens)
