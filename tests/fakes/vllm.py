"""vLLM's OpenAI-compatible server: it overlooks fields that it does not know, and refuses `suffix`; older ones refuse a priority."""

from __future__ import annotations

from typing import Any

from tests.fakes import completions
from tests.fakes.completions import ANSWER, Asked, Cache, RefusedError
from tests.servers import CompletionServer, Exchange, status

_MOST_STOPS = 4
"""Of recent releases; `VLLM_MAX_STOP_STRINGS` changes it."""


def server(
    *,
    model: str = "Qwen/Qwen2.5-Coder-1.5B",
    root: str = "",
    adapters: tuple[str, ...] = (),
    answer: tuple[str, ...] = ANSWER,
    key: str = "",
    context_tokens: int = 32_768,
    priority: bool = False,
    tells_cached: bool = True,
    old: bool = False,
    version: str = "0.11.0",
    port: int = 0,
) -> CompletionServer:
    """Options of the real one by other names.

    `root`: what it was started with, where `--served-model-name` says something else.  `adapters`: of `--lora-modules`.
    `priority`: `--scheduling-policy priority`.  `tells_cached`: `--enable-prompt-tokens-details`.
    `old`: errors in the form of former releases.  `version`: what it says of itself.
    """
    cache = Cache()

    async def complete(exchange: Exchange, asked: Asked) -> None:
        name = asked.get("model") or model
        if name not in (model, *adapters):
            raise _refused(404, f"The model `{name}` does not exist.", "NotFoundError", param="model", old=old)
        if len(asked.get("stop") or ()) > _MOST_STOPS:
            raise _refused(400, f"List should have at most {_MOST_STOPS} items after validation", "Bad Request", param="body.stop", old=old)
        if asked.get("suffix") is not None:
            raise _refused(400, "suffix is not currently supported", old=old)
        if asked.get("stream_options") and not asked.get("stream"):
            raise _refused(400, "Stream options can only be defined when `stream=True`.", old=old)
        if asked.get("priority", 0) != 0 and not priority:
            raise _refused(400, f"Got priority {asked['priority']} but Priority scheduling is not enabled.", old=old)
        n_prompt, n_asked = completions.n_tokens(asked["prompt"]), asked.get("max_tokens", 16)
        if n_prompt + n_asked > context_tokens:
            raise _refused(
                400,
                f"This model's maximum context length is {context_tokens} tokens. However, you requested {n_asked} output tokens and your "
                f"prompt contains at least {n_prompt} input tokens, for a total of at least {n_prompt + n_asked} tokens. Please reduce the "
                "length of the input prompt or the number of requested output tokens.",
                old=old,
            )
        cached = cache.reused(asked["prompt"])
        figures = completions.usage(asked["prompt"], answer, asked, cached=cached if tells_cached else None)
        await completions.stream(exchange, answer, asked, usage=figures)

    cards = [_card(model, root=root or model, max_model_len=context_tokens)]
    cards += [_card(name, root=f"/adapters/{name}", parent=model) for name in adapters]
    return CompletionServer(
        completions.serve("/v1/completions", answer=complete, key=key),
        routes={
            "/v1/models": completions.page({"object": "list", "data": cards}, key=key),
            "/health": status(200, b""),
            "/version": status(200, {"version": version}),
        },
        port=port,
    )


def _card(name: str, *, root: str, parent: str | None = None, max_model_len: int | None = None) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": 1,
        "owned_by": "vllm",
        "root": root,
        "parent": parent,
        "max_model_len": max_model_len,
        "permission": [],
    }


def _refused(code: int, message: str, kind: str = "BadRequestError", *, param: str | None = None, old: bool) -> RefusedError:
    error = {"message": message, "type": kind, "param": param, "code": code}
    return RefusedError(code, {"object": "error", **error} if old else {"error": error})
