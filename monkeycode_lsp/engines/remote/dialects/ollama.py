"""Ollama's `/api/generate`: `raw` with our own markers, or both halves without any, for its template to put together.

It fills its templates with whatever is not `raw`, so what holds markers always is, and so is a prefix that goes alone: a chat's
template around it would make the model talk.  Never sent: `num_ctx` and `shift`, since Ollama loads the model
anew for everyone when they change.  Always sent: `truncate` off, or a long prompt would lose its beginning, markers and all,
without a word; `think` off, or a model's thoughts would take the place of the answer.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from monkeycode_lsp import prompt
from monkeycode_lsp.domain import Finish, Usage
from monkeycode_lsp.engines.remote import facts
from monkeycode_lsp.engines.remote.dialects import choice
from monkeycode_lsp.engines.remote.dialects.base import Call, Fetch, Identity, Piece
from monkeycode_lsp.errors import EngineRefusedError

KEEP = timedelta(minutes=30)
"""How long the model stays loaded after an ask: Ollama's own five minutes are shorter than a pause of a working day."""
SMALLEST_WINDOW = 4096
"""The least that Ollama gives a model of which nobody says how much; what it really gives depends on its graphics card."""

_KEEP = f"{KEEP // timedelta(minutes=1)}m"
_NUM_CTX = re.compile(r"^num_ctx[ \t]{1,64}(\d{1,20})[ \t\r]*$", re.MULTILINE)


class _Event(msgspec.Struct):
    """`context`, the whole conversation as numbers, is left where it is."""

    response: str | None = None
    done: bool = False
    done_reason: str = ""
    eval_count: Any = None
    prompt_eval_count: Any = None
    prompt_eval_cached_count: Any = None
    error: msgspec.Raw = msgspec.Raw(b"null")


class _Details(msgspec.Struct):
    parent_model: Any = ""


class _Shown(msgspec.Struct):
    template: str = ""
    parameters: str = ""
    """The Modelfile's, one a line."""
    capabilities: list[str] | None = None
    """None: an older server, which does not say."""
    details: msgspec.Raw = msgspec.Raw(b"null")
    model_info: msgspec.Raw = msgspec.Raw(b"null")


class _Listed(msgspec.Struct):
    """A model in the list of all, or of those that are loaded."""

    name: str
    expires_at: datetime | None = None
    context_length: Any = None
    capabilities: tuple[str, ...] = ("completion",)


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Event).decode


class Ollama:
    """Completions in Ollama's form."""

    name = "ollama"
    inserts = True
    marks = True
    lines = True
    confidence = ""
    """Recent ones have llama-server sort the whole vocabulary for it."""
    optional = frozenset({"think", "truncate", "keep_alive"})

    def path(self, call: Call) -> str:  # noqa: ARG002 - the same for every call
        """See `Dialect.path`."""
        return "/api/generate"

    def body(self, call: Call, without: frozenset[str] = frozenset()) -> bytes:
        """See `Dialect.body`."""
        sampling = call.sampling
        options = {
            "num_predict": call.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "min_p": sampling.min_p,
            "repeat_penalty": sampling.repeat_penalty,
            "seed": sampling.seed,
            "stop": call.stop or None,  # an empty list would take the model's own ones away
        }
        fields = {
            "model": call.model,
            "prompt": call.text,
            "suffix": call.suffix,
            "raw": call.suffix is None,
            "stream": True,
            "think": False,
            "truncate": False,
            "keep_alive": _KEEP,
            "options": {name: value for name, value in options.items() if value is not None},
        }
        return _encode({name: value for name, value in fields.items() if value is not None and name not in without})

    def read(self, data: bytes) -> Piece:
        """See `Dialect.read`."""
        event = _decode(data)
        error = bytes(event.error)
        if error != b"null":
            return Piece(error=error)
        if event.response is None:
            return Piece(answer=False)
        if not event.done:
            return Piece(text=event.response)
        finish = Finish.LENGTH if event.done_reason == "length" else Finish.STOP
        return Piece(text=event.response, finish=finish, usage=_usage(event), last=True)

    async def identify(self, fetch: Fetch, model: str) -> Identity:
        """See `Dialect.identify`.  Raises `EngineRefusedError` if there is no such model."""
        running = _listed(await fetch("/api/ps", None)) or []
        name = model or await _first(fetch, running)
        body = await fetch("/api/show", _encode({"model": name}))
        if body is None and model:
            await _must_have(fetch, model)
        shown = facts.read(body, _Shown) or _Shown()
        info = facts.read(bytes(shown.model_info), dict[str, Any]) or {}
        loaded = next((other for other in running if _same(other.name, name)), None)
        without = frozenset({"keep_alive"} if _stays_longer(loaded) else ())
        return Identity(
            name,
            _family(shown, info, name),
            _window(shown, info, loaded),
            inserts=_inserts(shown),
            without=without,
            load=("/api/generate", _encode({"model": name} if without else {"model": name, "keep_alive": _KEEP})),
        )


def _usage(event: _Event) -> Usage:
    """`prompt_eval_count` is all of the prompt in most releases and only what was new in others; one that tells the rest tells all."""
    whole, reused = facts.count(event.prompt_eval_count), facts.count(event.prompt_eval_cached_count)
    generated = facts.count(event.eval_count)
    if whole is None or reused is None or reused > whole:
        return Usage(generated=generated)
    return Usage(reused=reused, read=whole - reused, generated=generated)


def _listed(body: bytes | None) -> list[_Listed] | None:
    """None: there is no such list."""
    found = facts.entries(body, "models", _Listed)
    return None if found is None else [listed for listed in found if facts.name(listed.name)]


async def _first(fetch: Fetch, running: list[_Listed]) -> str:
    """The model to ask if the user names none: one that is known to fill in, and best one that is loaded."""
    pulled = _listed(await fetch("/api/tags", None)) or []
    names = [listed.name for listed in [*running, *pulled] if "completion" in listed.capabilities]
    best = choice.best(names, lambda name: (name,))
    if best is None:
        raise EngineRefusedError(
            "Ollama has no model that could complete code.",
            remedy="Get one, such as `ollama pull qwen2.5-coder:1.5b-base`, or name one in `model` of `remote.endpoints`.",
        )
    return best


async def _must_have(fetch: Fetch, model: str) -> None:
    """Raises if the list of models is there, and this one is not in it."""
    pulled = _listed(await fetch("/api/tags", None))
    if pulled is not None and not any(_same(listed.name, model) for listed in pulled):
        raise EngineRefusedError(
            f"Ollama has no model {model!r}.",
            remedy=f"Run `ollama pull {model}`, or set `model` in `remote.endpoints` to one that `ollama list` shows.",
        )


def _same(left: str, right: str) -> bool:
    """Without a tag, the latest is meant."""
    names = {name.lower() if ":" in name else f"{name.lower()}:latest" for name in (left, right)}
    return len(names) == 1


def _family(shown: _Shown, info: dict[str, Any], name: str) -> prompt.Family | None:
    """By the markers in the model's template, else by its names.

    Markers of which we do not know how their model was taught to use them are left to the template: it knows.
    """
    details = facts.read(bytes(shown.details), _Details) or _Details()
    names = [name, *map(facts.name, (details.parent_model, info.get("general.basename"), info.get("general.name")))]
    markers = prompt.markers_in(shown.template.__contains__)
    if markers.prefix:
        named = next((other for other in names if other and prompt.by_name(other)), name)
        family = prompt.by_vocabulary(markers, architecture=facts.name(info.get("general.architecture")), name=named)
        return family if family and family.name in {known.name for known in prompt.FAMILIES} else None
    return next(filter(None, (prompt.by_name(other) for other in names if other)), None)


def _inserts(shown: _Shown) -> bool | None:
    if shown.capabilities is not None:
        return "insert" in shown.capabilities
    return ".Suffix" in shown.template if shown.template else None


def _window(shown: _Shown, info: dict[str, Any], loaded: _Listed | None) -> int:
    """What it has if it is loaded, else what its Modelfile asks for, else the least; never more than it was trained with."""
    trained = next((facts.window(value) for key, value in info.items() if key.endswith(".context_length")), None)
    asked = _NUM_CTX.search(shown.parameters)
    window = (loaded and facts.window(loaded.context_length)) or (asked and facts.window(asked[1])) or SMALLEST_WINDOW
    return min(window, trained or window)


def _stays_longer(loaded: _Listed | None) -> bool:
    """Whether somebody has already said that it should stay longer than we would ask for: that is not ours to shorten."""
    return bool(loaded and loaded.expires_at and loaded.expires_at.tzinfo and loaded.expires_at > datetime.now(UTC) + KEEP)
