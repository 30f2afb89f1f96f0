"""OpenAI's own server, which refuses every field that it does not know and more than four stop strings."""

from __future__ import annotations

from typing import Any

from tests.fakes import completions
from tests.fakes.completions import ANSWER, Asked, Cache, RefusedError
from tests.servers import CompletionServer, Exchange

_KNOWN = frozenset(
    {
        "model",
        "prompt",
        "best_of",
        "echo",
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "max_tokens",
        "n",
        "presence_penalty",
        "seed",
        "stop",
        "stream",
        "stream_options",
        "suffix",
        "temperature",
        "top_p",
        "user",
    }
)
_MOST_STOPS = 4


def server(
    *,
    model: str = "gpt-3.5-turbo-instruct",
    answer: tuple[str, ...] = ANSWER,
    key: str = "",
    context_tokens: int = 4097,
    suffix: bool = True,
    refuses: tuple[str, ...] = (),
    port: int = 0,
) -> CompletionServer:
    """`suffix`: whether the model fills in.  `refuses`: more fields that it does not know, as smaller servers do not."""
    known = _KNOWN.difference(refuses)
    cache = Cache()

    async def complete(exchange: Exchange, asked: Asked) -> None:
        unknown = sorted(set(asked) - known)
        if unknown:
            raise _refused(400, f"Unrecognized request argument supplied: {unknown[0]}")
        if not asked.get("model"):
            raise _refused(400, "you must provide a model parameter")
        if asked["model"] != model:
            raise _refused(404, f"The model `{asked['model']}` does not exist or you do not have access to it.", code="model_not_found")
        if len(asked.get("stop") or ()) > _MOST_STOPS:
            raise _refused(
                400,
                f"Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length {len(asked['stop'])} "
                "instead.",
                param="stop",
                code="array_above_max_length",
            )
        if "suffix" in asked and not suffix:
            raise _refused(400, "This model does not support the 'suffix' parameter.", param="suffix")
        prompt = asked["prompt"] + asked.get("suffix", "")
        n_prompt = completions.n_tokens(prompt)
        if n_prompt + asked["max_tokens"] > context_tokens:
            raise _refused(
                400,
                f"This model's maximum context length is {context_tokens} tokens, however you requested {n_prompt + asked['max_tokens']} "
                f"tokens ({n_prompt} in your prompt; {asked['max_tokens']} for the completion). Please reduce your prompt; or completion "
                "length.",
                code="context_length_exceeded",
            )
        figures = completions.usage(prompt, answer, asked, cached=cache.reused(prompt))
        await completions.stream(exchange, answer, asked, usage=figures)

    refused = _refused(401, "Incorrect API key provided.", code="invalid_api_key")
    unauthorised = refused.code, refused.body
    models = {"object": "list", "data": [{"id": model, "object": "model", "created": 1, "owned_by": "openai"}]}
    return CompletionServer(
        completions.serve(
            "/v1/completions",
            answer=complete,
            missing={"error": {"message": "Invalid URL", "type": "invalid_request_error", "param": None, "code": None}},
            key=key,
            unauthorised=unauthorised,
        ),
        routes={"/v1/models": completions.page(models, key=key, unauthorised=unauthorised)},
        port=port,
    )


def _refused(status: int, message: str, *, param: str | None = None, code: str | None = None) -> RefusedError:
    error: dict[str, Any] = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return RefusedError(status, {"error": error})
