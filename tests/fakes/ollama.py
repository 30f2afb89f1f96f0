"""An Ollama without models' weights: it has the real one's routes, fills templates as that does, and refuses what that refuses.

It says the same texts to every prompt.  What the model has read, templates filled in, is in `prompts`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.servers import DONE, CompletionServer, Exchange, Request, Script, choice, event

QWEN_INSERT = "<|fim_prefix|>{{ .Prompt }}<|fim_suffix|>{{ .Suffix }}<|fim_middle|>"
LAST_YEAR = "2025-01-01T00:00:00Z"
_FIELDS = {"raw": bool, "stream": bool, "prompt": str, "suffix": str, "think": bool, "truncate": bool, "options": dict}
_TYPES: dict[str, type | tuple[type, ...]] = {
    "num_predict": int,
    "seed": int,
    "num_ctx": int,
    "temperature": (int, float),
    "top_p": (int, float),
    "min_p": (int, float),
    "repeat_penalty": (int, float),
    "stop": list,
}


@dataclass(frozen=True)
class Model:
    """One model as it was pulled."""

    insert: str = QWEN_INSERT
    """The template's branch for both halves; empty: it has none, and refuses a suffix."""
    thinks: bool = False
    tells: bool = True
    """Whether `/api/show` lists capabilities: older servers do not."""
    trained: int = 32_768
    """Tokens that it was trained with."""
    parameters: str = ""
    """Lines of its Modelfile, such as `num_ctx 8192`."""
    family: str = "qwen2"

    @property
    def template(self) -> str:
        chat = "[INST] {{ .Prompt }} [/INST]"
        return f"{{{{- if .Suffix }}}}{self.insert}\n{{{{- else }}}}{chat}\n{{{{- end }}}}" if self.insert else chat

    @property
    def capabilities(self) -> list[str]:
        return ["completion", *(["insert"] if self.insert else []), *(["thinking"] if self.thinks else [])]


class Ollama(CompletionServer):
    """The mutable state is what was read and loaded; it changes with each request to generate, and in `unload`."""

    def __init__(
        self, texts: Iterable[str], models: Mapping[str, Model], *, running: Mapping[str, str], window: int, reports: bool
    ) -> None:
        routes: dict[str, Script] = {
            "/": _home,
            "/api/version": _version,
            "/api/tags": self._tags,
            "/api/ps": self._ps,
            "/api/show": self._show,
            "/v1/models": self._cards,
        }
        super().__init__(self._generate, routes=routes)
        self.prompts: list[str] = []
        self.loads: list[str] = []
        """The models loaded so far; one is loaded anew when it is asked for with another window."""
        self.may_load = asyncio.Event()
        """While it is not set, loading goes on and on; a load is given up when the one who asked for it goes."""
        self.may_load.set()
        self._loading: set[str] = set()
        self._texts = tuple(texts)
        self._models = {_full(name): model for name, model in models.items()}
        self._running = {_full(name): until for name, until in running.items()}
        self._windows = dict.fromkeys(self._running, window)
        self._window = window
        self._reports = reports

    def unload(self) -> None:
        """As after a long pause."""
        self._windows.clear()
        self._running.clear()

    async def handle(self, request: Request, transport: asyncio.Transport) -> bool:
        """A request that only loads the model is none that completes."""
        if request.path == "/api/generate" and not request.json.get("prompt"):
            self.others.append(request)
            exchange = Exchange(self, request, transport)
            await self._generate(exchange)
            return exchange.keep
        return await super().handle(request, transport)

    async def _tags(self, exchange: Exchange) -> None:
        await exchange.respond(
            200, {"models": [{"name": name, "model": name, "details": {"family": m.family}} for name, m in self._models.items()]}
        )

    async def _cards(self, exchange: Exchange) -> None:
        data = [{"id": name, "object": "model", "created": 1, "owned_by": "library"} for name in self._models]
        await exchange.respond(200, {"object": "list", "data": data})

    async def _ps(self, exchange: Exchange) -> None:
        models = []
        for name, until in self._running.items():
            more = {"context_length": self._windows[name]} if self._reports else {}
            models.append({"name": name, "model": name, "expires_at": until, "size_vram": 1, **more})
        await exchange.respond(200, {"models": models})

    async def _show(self, exchange: Exchange) -> None:
        asked = exchange.request.json
        name = asked.get("model") or asked.get("name")
        model = self._models.get(_full(name or ""))
        if not name:
            await _refuse(exchange, 400, "model is required")
        elif model is None:
            await _refuse(exchange, 404, f"model '{name}' not found")
        else:
            info = {"general.architecture": model.family, f"{model.family}.context_length": model.trained, "tokenizer.ggml.tokens": None}
            told = {"capabilities": model.capabilities} if model.tells else {}
            details = {"family": model.family, "format": "gguf"}
            shown = {"template": model.template, "parameters": model.parameters, "details": details, "model_info": info, **told}
            await exchange.respond(200, shown)

    async def _generate(self, exchange: Exchange) -> None:
        asked = exchange.request.json
        path = exchange.request.path
        if not path.endswith(("/api/generate", "/v1/completions")):
            await exchange.respond(404, b"404 page not found", "text/plain")
            return
        openai = path.endswith("/v1/completions")
        if openai:
            asked = {
                **asked,
                "stream": asked.get("stream", False),
                "options": {"num_predict": asked.get("max_tokens", -1), "stop": asked.get("stop") or []},
            }
        name = asked.get("model", "")
        model = self._models.get(_full(name))
        refused = _refused(name, model, asked)
        if refused is not None or model is None:
            code, message = refused or (404, f"model '{name}' not found")
            await exchange.respond(code, {"error": {"message": message, "type": "api_error"}} if openai else {"error": message})
            return
        window = await self._load(exchange, _full(name), asked)
        if not window:
            return
        if not asked.get("prompt"):
            await exchange.respond(200, _event(name, "", done=True, done_reason="load"))
            return
        text = _rendered(model, asked)
        if len(text) >= window and asked.get("truncate", True):
            text = text[-window // 2 :]
        if len(text) >= window:
            await _refuse(exchange, 400, f"the request exceeds the available context size ({window} tokens)")
            return
        self.prompts.append(text)
        await (self._say_as_openai if openai else self._say)(exchange, asked, len(text))

    async def _load(self, exchange: Exchange, name: str, asked: Any) -> int:
        """Its window; 0: who asked for it has gone, and so the load was given up."""
        window = int(asked.get("options", {}).get("num_ctx", self._window))
        if self._windows.get(name) != window:
            begins = name not in self._loading
            if begins:
                self.loads.append(name)
                self._loading.add(name)
            loaded = await self._loaded(exchange)
            if begins:
                self._loading.discard(name)
            if not loaded:
                return 0
            self._windows[name] = window
        minutes = int(asked.get("keep_alive", "5m").removesuffix("m"))
        self._running[name] = (datetime.now(UTC) + timedelta(minutes=minutes)).isoformat()
        return window

    async def _loaded(self, exchange: Exchange) -> bool:
        waits = [asyncio.ensure_future(event.wait()) for event in (self.may_load, exchange.request.closed)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return self.may_load.is_set()

    async def _say(self, exchange: Exchange, asked: Any, n_prompt: int) -> None:
        name = asked["model"]
        said, reason = _said(self._texts, asked["options"])
        counts = {
            "total_duration": 5,
            "load_duration": 1,
            "prompt_eval_count": n_prompt,
            "prompt_eval_duration": 2,
            "eval_count": len(said),
            "eval_duration": 3,
        }
        context = {} if asked.get("raw") else {"context": list(range(n_prompt))}
        if not asked.get("stream", True):
            await exchange.respond(200, _event(name, "".join(said), done=True, done_reason=reason, **context, **counts))
            return
        await exchange.head(200, "application/x-ndjson")
        for text in said:
            await exchange.send(_line(_event(name, text, done=False)))
        await exchange.send(_line(_event(name, "", done=True, done_reason=reason, **context, **counts)))
        await exchange.end()

    async def _say_as_openai(self, exchange: Exchange, asked: Any, n_prompt: int) -> None:
        said, reason = _said(self._texts, asked["options"])
        usage = {"prompt_tokens": n_prompt, "completion_tokens": len(said), "total_tokens": n_prompt + len(said)}
        if not asked["stream"]:
            await exchange.respond(200, choice("".join(said), reason, usage=usage))
            return
        await exchange.head()
        for text in said:
            await exchange.send(event(choice(text)))
        await exchange.send(event(choice("", reason)))
        await exchange.send(DONE)
        await exchange.end()


def server(
    texts: Iterable[str] = ("ok",),
    *,
    models: Mapping[str, Model] | None = None,
    running: Mapping[str, str] | None = None,
    window: int = 4096,
    reports: bool = True,
) -> Ollama:
    """`running`: models that are loaded, and until when; `window`: characters that each of them reads; `reports`: `/api/ps` tells it."""
    known = {"qwen2.5-coder:1.5b": Model()} if models is None else models
    return Ollama(texts, known, running=running or {}, window=window, reports=reports)


async def _home(exchange: Exchange) -> None:
    await exchange.respond(200, b"Ollama is running", "text/plain")


async def _version(exchange: Exchange) -> None:
    await exchange.respond(200, {"version": "0.12.0"})


async def _refuse(exchange: Exchange, code: int, message: str) -> None:
    await exchange.respond(code, {"error": message})


def _full(name: str) -> str:
    return name if not name or ":" in name else f"{name}:latest"


def _refused(name: str, model: Model | None, asked: Any) -> tuple[int, str] | None:
    for field, kind in _FIELDS.items():
        if not isinstance(asked.get(field, kind()), kind):
            return 400, f"json: cannot unmarshal into Go struct field GenerateRequest.{field} of type {kind.__name__}"
    if model is None:
        return 404, f"model '{name}' not found"
    if asked.get("raw") and (asked.get("template") or asked.get("system") or asked.get("context")):
        return 400, "raw mode does not support template, system, or context"
    if asked.get("think") and not model.thinks:
        return 400, f'"{name}" does not support thinking'
    if asked.get("suffix") and not model.insert:
        return 400, f"registry.ollama.ai/library/{_full(name)} does not support insert"
    wrong = [option for option, value in asked.get("options", {}).items() if not isinstance(value, _TYPES.get(option, object))]
    return (500, f'option "{wrong[0]}" must be of another type') if wrong else None  # unknown ones are only logged


def _rendered(model: Model, asked: Any) -> str:
    text, after = asked["prompt"], asked.get("suffix", "")
    if asked.get("raw"):
        return str(text)
    if after:
        return model.insert.replace("{{ .Prompt }}", text).replace("{{ .Suffix }}", after)
    return f"[INST] {text} [/INST]"


def _said(texts: tuple[str, ...], options: Any) -> tuple[list[str], str]:
    """The texts up to the first stop string, no more than asked for; and why there are no more."""
    limit = options.get("num_predict", -1)
    said, reason = list(texts), "stop"
    if 0 <= limit <= len(said):
        said, reason = said[:limit], "length"
    whole = "".join(said)
    ends = [whole.find(stop) for stop in options.get("stop") or () if stop in whole]
    if ends:
        return ([whole[: min(ends)]] if min(ends) else []), "stop"
    return said, reason


def _event(model: str, response: str, **more: Any) -> dict[str, Any]:
    return {"model": model, "created_at": LAST_YEAR, "response": response, **more}


def _line(value: Any) -> bytes:
    """Go writes `<`, `>` and `&` as escapes."""
    text = json.dumps(value, ensure_ascii=False)
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text.encode() + b"\n"
