"""DeepSeek's beta route, which fills in without markers; without `/beta` in the path there is no such thing."""

from __future__ import annotations

from typing import Any

from tests.fakes import completions
from tests.fakes.completions import ANSWER, Asked, Cache, RefusedError
from tests.servers import CompletionServer, Exchange

MODELS = ("deepseek-reasoner", "deepseek-chat")
_MOST_TOKENS = 4096


def server(
    *, answer: tuple[str, ...] = ANSWER, key: str = "", context_tokens: int = 65_536, paid: bool = True, port: int = 0
) -> CompletionServer:
    """`paid`: whether there is money left."""
    cache = Cache()

    async def complete(exchange: Exchange, asked: Asked) -> None:
        if not paid:
            raise _refused(402, "Insufficient Balance", "unknown_error")
        if asked.get("model") not in MODELS:
            raise _refused(400, "Model Not Exist")
        if asked["model"] == "deepseek-reasoner":
            raise _refused(400, "deepseek-reasoner does not support fim completions")
        if not 1 <= asked["max_tokens"] <= _MOST_TOKENS:
            raise _refused(400, "Invalid max_tokens value, the valid range of max_tokens is [1, 4096]")
        prompt = asked["prompt"] + asked.get("suffix", "")
        n_prompt = completions.n_tokens(prompt)
        if n_prompt + asked["max_tokens"] > context_tokens:
            raise _refused(
                400,
                f"This model's maximum context length is {context_tokens} tokens. However, you requested {n_prompt + asked['max_tokens']} "
                f"tokens ({n_prompt} in the messages, {asked['max_tokens']} in the completion). Please reduce the length of the messages or "
                "completion.",
            )
        hit = cache.reused(prompt)
        figures = completions.usage(prompt, answer, asked)
        figures |= {"prompt_cache_hit_tokens": hit, "prompt_cache_miss_tokens": figures["prompt_tokens"] - hit}
        await completions.stream(exchange, answer, asked, usage=figures)

    refused = _refused(401, "Authentication Fails, Your api key is invalid", "authentication_error")
    unauthorised = refused.code, refused.body
    models = {"object": "list", "data": [{"id": name, "object": "model", "owned_by": "deepseek"} for name in MODELS]}
    return CompletionServer(
        completions.serve("/beta/completions", answer=complete, missing=b"", key=key, unauthorised=unauthorised),
        routes={"/v1/models": completions.page(models, key=key, unauthorised=unauthorised)},
        port=port,
    )


def _refused(status: int, message: str, kind: str = "invalid_request_error") -> RefusedError:
    error: dict[str, Any] = {"message": message, "type": kind, "param": None, "code": kind}
    return RefusedError(status, {"error": error})
