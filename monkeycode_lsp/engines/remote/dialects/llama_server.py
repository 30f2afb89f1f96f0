"""llama.cpp's own server: `/completion` with our markers, or `/infill` where only the server knows the model's.

Our own are better where we know them: `/infill` cuts both halves to what fits one batch, so that the cut moves with
every key and nothing of the prompt is reused, and it tells models that know repositories of one called "myproject".
A server with many models (a router) is told which by `model`.

`return_progress` is not for us: while the server reads a prompt, it notices that we have gone only
when it has something to write.  Three things are left out on purpose.  `n_indent` ends an answer before the bracket that closes
its block, and calls that `n_predict`; our own stops know brackets.  `n_probs` sorts the whole vocabulary for every token: 3 ms
each on a desktop's processor, a fifth of what a small model takes.
`t_max_predict_ms` ends answers that are still wanted.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec

from monkeycode_lsp import prompt
from monkeycode_lsp.domain import Finish, Usage
from monkeycode_lsp.engines.remote import facts
from monkeycode_lsp.engines.remote.dialects import choice
from monkeycode_lsp.engines.remote.dialects.base import Call, Fetch, Identity, Piece

_ROUTER = "router"
_NULL = msgspec.Raw(b"null")


class _Body(msgspec.Struct):
    prompt: str
    n_predict: int
    temperature: float
    top_p: float
    min_p: float
    repeat_penalty: float
    stop: tuple[str, ...]
    model: str | msgspec.UnsetType
    input_prefix: str | msgspec.UnsetType
    input_suffix: str | msgspec.UnsetType
    seed: int | msgspec.UnsetType
    id_slot: int | msgspec.UnsetType
    stream: bool = True
    cache_prompt: bool = True
    return_progress: bool = True
    response_fields: tuple[str, ...] = ("content", "stop", "stop_type", "timings", "tokens_evaluated")
    """Of the last event, which otherwise repeats the whole prompt."""


class _Timings(msgspec.Struct):
    cache_n: Any = None
    prompt_n: Any = None
    predicted_n: Any = None


class _Progress(msgspec.Struct):
    total: Any = None
    cache: Any = None


class _Event(msgspec.Struct):
    content: str | None = None
    prompt_progress: msgspec.Raw = _NULL
    """Comes while the prompt is read, with all its tokens and those found in the cache."""
    tokens: list[int] = []
    stop: bool = False
    stop_type: str = ""
    stopped_limit: bool = False
    """How older servers say that `n_predict` was reached."""
    timings: msgspec.Raw = _NULL
    tokens_evaluated: Any = None
    """All of the prompt's tokens."""
    error: msgspec.Raw = _NULL


class _Generation(msgspec.Struct):
    n_ctx: Any = None
    """Of one slot."""


class _Properties(msgspec.Struct):
    role: Any = ""
    model_path: Any = ""
    model_alias: Any = ""
    total_slots: Any = 0
    default_generation_settings: msgspec.Raw = _NULL


class _Status(msgspec.Struct):
    value: str = ""


class _Card(msgspec.Struct):
    id: str
    status: msgspec.Raw = _NULL

    @property
    def is_loaded(self) -> bool:
        status = facts.read(bytes(self.status), _Status)
        return status is not None and status.value == "loaded"


class _Token(msgspec.Struct):
    piece: str
    """Those that are no text of their own are lists of bytes."""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Event).decode


class LlamaServer:
    """Completions in llama-server's form."""

    name = "llama-server"
    inserts = True
    marks = True
    lines = False
    confidence = ""
    optional: frozenset[str] = frozenset()
    """It takes no notice of what it does not know."""

    def path(self, call: Call) -> str:
        """See `Dialect.path`."""
        return "/completion" if call.suffix is None else "/infill"

    def body(self, call: Call, without: frozenset[str] = frozenset()) -> bytes:  # noqa: ARG002 - nothing here is optional
        """See `Dialect.body`."""
        sampling = call.sampling
        infills = call.suffix is not None
        return _encode(
            _Body(
                prompt="" if infills else call.text,
                n_predict=call.max_tokens,
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                min_p=sampling.min_p,
                repeat_penalty=sampling.repeat_penalty,
                stop=call.stop,
                model=call.model or msgspec.UNSET,
                input_prefix=call.text if infills else msgspec.UNSET,
                input_suffix=msgspec.UNSET if call.suffix is None else call.suffix,
                seed=msgspec.UNSET if sampling.seed is None else sampling.seed,
                id_slot=msgspec.UNSET if call.slot is None else call.slot,
            )
        )

    def read(self, data: bytes) -> Piece:
        """See `Dialect.read`."""
        event = _decode(data)
        error = bytes(event.error)
        if error != b"null":
            return Piece(error=error)
        if event.content is None:
            return Piece(answer=False)
        if not event.stop:
            return Piece(text=event.content, usage=_progress(event), n_tokens=len(event.tokens) if event.content else 0)
        finish = Finish.LENGTH if event.stop_type == "limit" or event.stopped_limit else Finish.STOP
        return Piece(text=event.content, finish=finish, usage=_usage(event), last=True)

    async def identify(self, fetch: Fetch, model: str) -> Identity:
        """See `Dialect.identify`."""
        properties = facts.read(await fetch("/props", None), _Properties) or _Properties()
        if properties.role == _ROUTER:
            model = model or await _loaded(fetch)
            properties = facts.read(await fetch(f"/props?model={quote(model, safe='')}", None), _Properties) or _Properties()
        path = facts.name(properties.model_path) or facts.name(properties.model_alias)
        generation = facts.read(bytes(properties.default_generation_settings), _Generation) or _Generation()
        slots = facts.count(properties.total_slots, most=facts.MOST_SLOTS) or 0
        family = await _family(fetch, model, model or path)
        return Identity(model or _last(path), family, facts.window(generation.n_ctx), slots=slots)


async def _loaded(fetch: Fetch) -> str:
    """A router's model: one that is loaded before one that would have to be."""
    cards = [card for card in facts.entries(await fetch("/v1/models", None), "data", _Card) or [] if facts.name(card.id)]
    loaded = [card.id for card in cards if card.is_loaded and choice.writes([card.id])]
    return choice.best(loaded or [card.id for card in cards], lambda name: (name,)) or ""


async def _family(fetch: Fetch, model: str, name: str) -> prompt.Family | None:
    """By the vocabulary, which `/tokenize` shows: a marker that it knows is one token.  By the name where it shows nothing."""
    texts = {text for family in prompt.FAMILIES for text in msgspec.structs.astuple(family.markers) if text}
    asked = {"content": " ".join(sorted(texts)), "add_special": False, "parse_special": True, "with_pieces": True}
    body = await fetch("/tokenize", _encode(asked | ({"model": model} if model else {})))
    pieces = {token.piece for token in facts.entries(body, "tokens", _Token) or []}
    return prompt.by_vocabulary(prompt.markers_in(pieces.__contains__), architecture="", name=name) or prompt.by_name(name)


def _last(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]


def _progress(event: _Event) -> Usage | None:
    progress = facts.read(bytes(event.prompt_progress), _Progress)
    if progress is None:
        return None
    whole, reused = facts.count(progress.total) or 0, facts.count(progress.cache) or 0
    return Usage(reused=reused, read=max(0, whole - reused))


def _usage(event: _Event) -> Usage | None:
    timings = facts.read(bytes(event.timings), _Timings)
    if timings is None:
        return None
    reused, read, whole = facts.count(timings.cache_n), facts.count(timings.prompt_n), facts.count(event.tokens_evaluated)
    if reused is None and whole is not None and read is not None:  # older servers leave the sum to us
        reused = max(0, whole - read)
    return Usage(reused=reused, read=read, generated=facts.count(timings.predicted_n))
