"""llama.cpp's own server: `/completion`, with its figures about reuse.

`return_progress` is not for us: while the server reads a prompt, it notices that we have gone only
when it has something to write.
"""

from __future__ import annotations

import msgspec

from monkeycode_lsp import prompt
from monkeycode_lsp.domain import Finish, Usage
from monkeycode_lsp.engines.remote.dialects.base import Call, Fetch, Identity, Piece


class _Body(msgspec.Struct):
    prompt: str
    n_predict: int
    temperature: float
    top_p: float
    min_p: float
    repeat_penalty: float
    stop: tuple[str, ...]
    stream: bool = True
    cache_prompt: bool = True
    return_progress: bool = True
    response_fields: tuple[str, ...] = ("content", "stop", "stop_type", "timings")
    """Of the last event, which otherwise repeats the whole prompt."""


class _Timings(msgspec.Struct):
    cache_n: int | None = None
    prompt_n: int | None = None
    predicted_n: int | None = None


class _Progress(msgspec.Struct):
    total: int = 0
    cache: int = 0


class _Event(msgspec.Struct):
    content: str | None = None
    prompt_progress: _Progress | None = None
    """Comes while the prompt is read, with all its tokens and those found in the cache."""
    tokens: list[int] = []
    stop: bool = False
    stop_type: str = ""
    stopped_limit: bool = False
    """How older servers say that `n_predict` was reached."""
    timings: _Timings | None = None
    error: msgspec.Raw = msgspec.Raw(b"null")


class _Generation(msgspec.Struct, frozen=True):
    n_ctx: int | None = None


class _Properties(msgspec.Struct):
    model_path: str = ""
    model_alias: str = ""
    default_generation_settings: _Generation = _Generation()


class _Token(msgspec.Struct):
    piece: str | list[int] = ""


class _Tokens(msgspec.Struct):
    tokens: list[_Token] = []


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Event).decode


class LlamaServer:
    """Completions in llama-server's form."""

    name = "llama-server"
    inserts = False
    marks = True
    lines = False
    optional: frozenset[str] = frozenset()

    def path(self, call: Call) -> str:  # noqa: ARG002 - the same for every call
        """See `Dialect.path`."""
        return "/completion"

    def body(self, call: Call, without: frozenset[str] = frozenset()) -> bytes:  # noqa: ARG002 - nothing here is optional
        sampling = call.sampling
        return _encode(
            _Body(
                prompt=call.text,
                n_predict=call.max_tokens,
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                min_p=sampling.min_p,
                repeat_penalty=sampling.repeat_penalty,
                stop=call.stop,
            )
        )

    def read(self, data: bytes) -> Piece:
        event = _decode(data)
        error = bytes(event.error)
        if error != b"null":
            return Piece(error=error)
        if event.content is None:
            return Piece(answer=False)
        if not event.stop:
            progress = event.prompt_progress
            usage = Usage(reused=progress.cache, read=progress.total - progress.cache) if progress else None
            return Piece(text=event.content, usage=usage, n_tokens=len(event.tokens) if event.content else 0)
        finish = Finish.LENGTH if event.stop_type == "limit" or event.stopped_limit else Finish.STOP
        return Piece(text=event.content, finish=finish, usage=_usage(event.timings), last=True)

    async def identify(self, fetch: Fetch, model: str) -> Identity:
        body = await fetch("/props", None)
        try:
            properties = msgspec.json.decode(body, type=_Properties) if body else _Properties()
        except msgspec.DecodeError:
            properties = _Properties()
        name = model or properties.model_path or properties.model_alias
        return Identity(_last(name), await _family(fetch, name), properties.default_generation_settings.n_ctx)


async def _family(fetch: Fetch, name: str) -> prompt.Family | None:
    """By the vocabulary, which `/tokenize` shows: a marker that it knows is one token.  By the name where it shows nothing."""
    texts = {text for family in prompt.FAMILIES for text in msgspec.structs.astuple(family.markers) if text}
    asked = {"content": " ".join(sorted(texts)), "add_special": False, "parse_special": True, "with_pieces": True}
    body = await fetch("/tokenize", _encode(asked))
    try:
        tokens = msgspec.json.decode(body, type=_Tokens).tokens if body else []
    except msgspec.DecodeError:
        tokens = []
    pieces = {token.piece for token in tokens if isinstance(token.piece, str)}
    return prompt.by_vocabulary(prompt.markers_in(pieces.__contains__), architecture="", name=name) or prompt.by_name(name)


def _last(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]


def _usage(timings: _Timings | None) -> Usage | None:
    if timings is None:
        return None
    return Usage(reused=timings.cache_n, read=timings.prompt_n, generated=timings.predicted_n)
