"""A llama-server without a model: it has the real one's routes, and refuses what that refuses.

It says the same texts to every prompt.  Its tokens are markers of its vocabulary and single characters, and each
slot remembers what it has read, so that reuse is what it would be.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from monkeycode_lsp import prompt
from tests.servers import DONE, CompletionServer, Exchange, Script, choice, event

QWEN = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>")
_OPEN = frozenset({"/health", "/v1/health"})
"""Routes that want no key."""
_NUMBERS = ("n_predict", "temperature", "top_p", "min_p", "repeat_penalty", "seed", "id_slot", "n_indent", "n_probs")


class LlamaServer(CompletionServer):
    """With what the model has read in `prompts`, its markers in place."""

    def __init__(self, *scripts: Script, routes: Mapping[str, Script], port: int = 0) -> None:
        super().__init__(*scripts, routes=routes, port=port)
        self.prompts: list[str] = []
        self.slots: list[str] = []
        """What each slot holds."""


@dataclass(frozen=True)
class _Model:
    """What it is and what it says."""

    texts: tuple[str, ...]
    markers: tuple[str, ...]
    inserts: tuple[str, ...]
    n_ctx: int
    models: tuple[str, ...]

    def tokens(self, text: str) -> list[str]:
        """A marker is one token, and so is every character beside."""
        marker = "|".join(map(re.escape, self.markers))
        return re.findall(f"{marker}|(?s:.)" if marker else "(?s:.)", text)


def server(
    texts: Iterable[str] = ("ok",),
    *,
    model: str = "/models/qwen2.5-coder-1.5b-q8_0.gguf",
    markers: Sequence[str] = QWEN,
    inserts: Sequence[str] | None = None,
    n_ctx: int = 4096,
    n_slots: int = 1,
    key: str = "",
    loaded: asyncio.Event | None = None,
    models: Sequence[str] = (),
    port: int = 0,
) -> LlamaServer:
    """`markers`: control tokens of its vocabulary; `inserts`: prefix, suffix and middle token, with which `/infill` works.

    `loaded`: until it is set, everything answers 503.  `models`: it is a router, and each request has to name one of these;
    the last one is loaded.
    """
    known = tuple(markers)[:3] if inserts is None else tuple(inserts)
    told = _Model(tuple(texts), tuple(markers), known, n_ctx, tuple(models))

    def route(script: Script) -> Script:
        return lambda exchange: _guarded(script, exchange, key, loaded)

    async def tokenize(exchange: Exchange) -> None:
        asked = exchange.request.json
        if told.models and asked.get("model") not in told.models:
            await _refuse(exchange, 400, "model name is missing from the request", "invalid_request_error")
            return
        tokens = told.tokens(asked.get("content", "")) if asked.get("parse_special", True) else list(asked.get("content", ""))
        pieces = [{"id": number, "piece": piece} for number, piece in enumerate(tokens)]
        await exchange.respond(200, {"tokens": pieces if asked.get("with_pieces") else list(range(len(tokens)))})

    async def props(exchange: Exchange) -> None:
        generation = {"id": 0, "n_ctx": n_ctx, "params": {"n_predict": -1}}
        told_of_it = {"total_slots": n_slots, "model_path": model, "model_alias": model, "build_info": "b1"}
        await exchange.respond(200, {"default_generation_settings": generation, **told_of_it})

    async def router(exchange: Exchange) -> None:
        none = {"model_alias": "llama-server", "model_path": "none", "default_generation_settings": {"params": {}, "n_ctx": 0}}
        await exchange.respond(200, {"role": "router", **none})

    async def cards(exchange: Exchange) -> None:
        names = told.models or (model,)
        states = ["unloaded"] * (len(names) - 1) + ["loaded"]
        data = [
            {"id": name, "object": "model", "owned_by": "llamacpp", "status": {"value": state}}
            for name, state in zip(names, states, strict=True)
        ]
        await exchange.respond(200, {"object": "list", "data": data})

    async def health(exchange: Exchange) -> None:
        await exchange.respond(200, {"status": "ok"})

    routes = {
        "/health": health,
        "/v1/health": health,
        "/props": router if models else props,
        **{f"/props?model={quote(name, safe='')}": props for name in models},
        "/tokenize": tokenize,
        "/models": cards,
        "/v1/models": cards,
    }

    async def complete(exchange: Exchange) -> None:
        await _complete(made, told, exchange)

    made = LlamaServer(route(complete), routes={path: route(script) for path, script in routes.items()}, port=port)
    made.slots = [""] * n_slots
    return made


async def _guarded(script: Script, exchange: Exchange, key: str, loaded: asyncio.Event | None) -> None:
    request = exchange.request
    if key and request.path not in _OPEN and request.headers.get("authorization") != f"Bearer {key}":
        await _refuse(exchange, 401, "Invalid API Key", "authentication_error")
    elif loaded is not None and not loaded.is_set():
        await _refuse(exchange, 503, "Loading model", "unavailable_error")
    else:
        await script(exchange)


async def _refuse(exchange: Exchange, code: int, message: str, kind: str, **more: Any) -> None:
    await exchange.respond(code, {"error": {"code": code, "message": message, "type": kind, **more}})


async def _complete(made: LlamaServer, model: _Model, exchange: Exchange) -> None:
    route, asked = exchange.request.path, exchange.request.json
    refused = _refused(model, route, asked)
    if refused is not None:
        await _refuse(exchange, *refused)
        return
    text = asked.get("prompt", "")
    if route.endswith("/infill"):
        before, after, middle = model.inserts
        text = f"{before}{asked['input_prefix']}{after}{asked['input_suffix']}{middle}{text}"
    tokens = model.tokens(text)
    if len(tokens) >= model.n_ctx:
        await _refuse(
            exchange,
            400,
            f"request ({len(tokens)} tokens) exceeds the available context size ({model.n_ctx} tokens), try increasing it",
            "exceed_context_size_error",
            n_prompt_tokens=len(tokens),
            n_ctx=model.n_ctx,
        )
        return
    made.prompts.append(text)
    reused = _read(made, tokens, asked) if asked.get("cache_prompt", True) else 0
    said, stop_type = _said(model.texts, asked)
    if route.endswith("/v1/completions"):
        await _as_openai(exchange, said, stop_type)
    else:
        await _as_llama_server(exchange, asked, said, stop_type, (len(tokens), reused))


def _refused(model: _Model, route: str, asked: Any) -> tuple[int, str, str] | None:
    if model.models and asked.get("model") not in model.models:
        return 400, "model not found" if asked.get("model") else "model name is missing from the request", "invalid_request_error"
    for field in _NUMBERS:
        if not isinstance(asked.get(field, 0), int | float):
            return 400, f"Field '{field}': [json.exception.type_error.302] type must be number", "invalid_request_error"
    if route.endswith("/infill") and not model.inserts:
        absent = "prefix token is missing. suffix token is missing. middle token is missing. "
        return 501, f"Infill is not supported by this model: {absent}", "not_supported_error"
    needed = ("input_suffix", "input_prefix") if route.endswith("/infill") else ("prompt",)
    missing = next((field for field in needed if field not in asked), "")
    return (400, f"[json.exception.out_of_range.403] key '{missing}' not found", "invalid_request_error") if missing else None


def _read(made: LlamaServer, tokens: list[str], asked: Any) -> int:
    """How many of the tokens the best slot has read already; it holds all of them then."""
    text = "".join(tokens)
    named = asked.get("id_slot", -1)
    slots = [named] if named in range(len(made.slots)) else list(range(len(made.slots)))
    best = max(slots, key=lambda slot: _common(made.slots[slot], text))
    common = made.slots[best][: _common(made.slots[best], text)]
    made.slots[best] = text
    n_reused, n_text = 0, 0
    for token in tokens[:-1]:  # the last one is always read anew
        n_text += len(token)
        if n_text > len(common):
            break
        n_reused += 1
    return n_reused


def _common(left: str, right: str) -> int:
    return next((number for number, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


def _said(texts: tuple[str, ...], asked: Any) -> tuple[list[str], str]:
    """The texts up to the first stop string, no more than asked for; and why there are no more."""
    limit = asked.get("n_predict", asked.get("max_tokens", -1))
    said, stop_type = list(texts), "eos"
    if 0 <= limit < len(said) + 1:
        said, stop_type = said[:limit], "limit"
    whole = "".join(said)
    ends = [whole.find(stop) for stop in asked.get("stop") or () if stop in whole]
    if ends:
        end, said, stop_type = min(ends), [], "word"
        said = [whole[:end]] if end else []
    return said, stop_type


async def _as_llama_server(exchange: Exchange, asked: Any, said: list[str], stop_type: str, read: tuple[int, int]) -> None:
    n_tokens, n_reused = read
    timings = {"cache_n": n_reused, "prompt_n": n_tokens - n_reused, "predicted_n": len(said)}
    last: dict[str, Any] = {
        "stop": True,
        "stop_type": stop_type,
        "timings": timings,
        "tokens_cached": n_tokens,
        "prompt": asked.get("prompt", ""),
    }
    if not asked.get("stream"):
        await exchange.respond(200, _fields({"content": "".join(said), **last}, asked))
        return
    await exchange.head()
    if asked.get("return_progress"):
        progress = {"total": n_tokens, "cache": n_reused, "processed": n_tokens, "time_ms": 1}
        await exchange.event({"index": 0, "content": "", "tokens": [], "stop": False, "id_slot": -1, "prompt_progress": progress})
    for number, text in enumerate(said):
        await exchange.event(
            {"index": 0, "content": text, "tokens": [number], "stop": False, "id_slot": -1, "tokens_predicted": number + 1}
        )
    await exchange.event(_fields({"content": "", **last}, asked))
    await exchange.end()


def _fields(event: dict[str, Any], asked: Any) -> dict[str, Any]:
    """Of the last event only: the others are sent as they are."""
    wanted = asked.get("response_fields")
    return {field: event[field] for field in wanted if field in event} if wanted else event


async def _as_openai(exchange: Exchange, said: list[str], stop_type: str) -> None:
    finish = "length" if stop_type == "limit" else "stop"
    if not exchange.request.json.get("stream"):
        await exchange.respond(200, choice("".join(said), finish))
        return
    await exchange.head()
    for text in said:
        await exchange.send(event(choice(text)))
    await exchange.send(event(choice("", finish)))
    await exchange.send(DONE)
    await exchange.end()


def markers_of(family: str) -> tuple[str, ...]:
    """All markers of one of our families, prefix, suffix and middle first."""
    known = next(known for known in prompt.FAMILIES if known.name == family).markers
    return tuple(text for text in (known.prefix, known.suffix, known.middle, known.pad, known.repository, known.separator) if text)
