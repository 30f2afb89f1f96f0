"""OpenAI's `/v1/completions`, which nearly every server of models offers."""

from __future__ import annotations

import msgspec

from monkeycode_lsp import prompt
from monkeycode_lsp.domain import Finish, Usage
from monkeycode_lsp.engines.remote.dialects.base import Call, Fetch, Identity, Piece

MOST_STOPS = 4
"""More are refused by OpenAI and by servers that copy it; the rest is applied on our side."""

_FINISH = {"length": Finish.LENGTH, "max_tokens": Finish.LENGTH, "abort": None, "error": None, "content_filter": None}
"""None: the server gave up.  Any other word means that the model was done."""


class _Body(msgspec.Struct):
    prompt: str
    max_tokens: int
    temperature: float
    top_p: float | msgspec.UnsetType = msgspec.UNSET
    model: str | msgspec.UnsetType = msgspec.UNSET
    suffix: str | msgspec.UnsetType = msgspec.UNSET
    stop: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    stream: bool = True


class _Choice(msgspec.Struct):
    text: str | None = None
    index: int | None = 0
    finish_reason: str | None = None


class _Details(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None


class _Event(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: msgspec.Raw = msgspec.Raw(b"null")
    detail: msgspec.Raw = msgspec.Raw(b"null")
    """What web frameworks call their errors."""
    object: str | None = None


class _Card(msgspec.Struct):
    id: str
    max_model_len: int | None = None


class _Cards(msgspec.Struct):
    data: list[_Card]


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Event).decode


class OpenAI:
    """Completions in OpenAI's form."""

    name = "openai"
    inserts = True
    marks = True
    lines = False
    optional: frozenset[str] = frozenset()

    def path(self, call: Call) -> str:  # noqa: ARG002 - the same for every call
        """See `Dialect.path`."""
        return "/v1/completions"

    def body(self, call: Call, without: frozenset[str] = frozenset()) -> bytes:  # noqa: ARG002 - nothing here is optional
        return _encode(
            _Body(
                prompt=call.text,
                max_tokens=call.max_tokens,
                temperature=call.sampling.temperature,
                top_p=call.sampling.top_p if call.sampling.top_p < 1 else msgspec.UNSET,
                model=call.model or msgspec.UNSET,
                suffix=msgspec.UNSET if call.suffix is None else call.suffix,
                stop=call.stop[:MOST_STOPS] or msgspec.UNSET,
            )
        )

    def read(self, data: bytes) -> Piece:
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
        return Piece(text=choice.text or "", finish=finish, broken=broken, usage=usage)

    async def identify(self, fetch: Fetch, model: str) -> Identity:
        if model:
            return Identity(model, prompt.by_name(model))
        body = await fetch("/v1/models", None)
        try:
            cards = msgspec.json.decode(body, type=_Cards).data if body else []
        except msgspec.DecodeError:
            cards = []  # not every server has this list; the completion itself will tell more
        if not cards:
            return Identity("", None)
        return Identity(cards[0].id, prompt.by_name(cards[0].id), cards[0].max_model_len)


def _usage(usage: _Usage) -> Usage:
    reused = usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details else None
    read = None if usage.prompt_tokens is None else usage.prompt_tokens - (reused or 0)
    return Usage(reused=reused, read=read, generated=usage.completion_tokens)
