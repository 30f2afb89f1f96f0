"""Mistral's fill-in route: both halves without markers, an answer in the form of a chat, no field that it does not know."""

from __future__ import annotations

from typing import Any

from tests.fakes import completions
from tests.fakes.completions import ANSWER, Asked, RefusedError
from tests.servers import CompletionServer, Exchange

_KNOWN = frozenset(
    {"model", "prompt", "suffix", "temperature", "top_p", "max_tokens", "min_tokens", "stream", "stop", "random_seed", "metadata"}
)


def server(
    *,
    model: str = "codestral-latest",
    answer: tuple[str, ...] = ANSWER,
    key: str = "",
    context_tokens: int = 32_768,
    lists_models: bool = False,
    port: int = 0,
) -> CompletionServer:
    """`lists_models`: as the general host does; the one that is for Codestral only has no such page."""

    async def complete(exchange: Exchange, asked: Asked) -> None:
        for name in sorted(set(asked) - _KNOWN):
            raise _invalid("extra_forbidden", name, "Extra inputs are not permitted", asked[name])
        for name in ("model", "prompt"):
            if name not in asked:
                raise _invalid("missing", name, "Field required", dict(asked))
        if asked["model"] != model:
            raise RefusedError(400, _error(f"Invalid model: {asked['model']}", "invalid_model", "1500"))
        if not 0 <= asked.get("temperature", 0) <= 1.5:
            raise _invalid("less_than_equal", "temperature", "Input should be less than or equal to 1.5", asked["temperature"])
        prompt = asked["prompt"] + asked.get("suffix", "")
        n_prompt = completions.n_tokens(prompt)
        if n_prompt > context_tokens:
            message = f"Prompt contains {n_prompt} tokens, too large for model with {context_tokens} maximum context length"
            raise RefusedError(400, _error(message, "invalid_request_error", "3051"))
        figures = completions.usage(prompt, answer, asked)
        await completions.stream(exchange, answer, asked, event=completions.chat_event, usage=figures, usage_with_last=True)

    unauthorised = (401, {"message": "Unauthorized", "request_id": "1"})
    models = {"object": "list", "data": [{"id": model, "object": "model", "created": 1, "owned_by": "mistralai"}]}
    return CompletionServer(
        completions.serve(
            "/v1/fim/completions",
            answer=complete,
            missing={"message": "no Route matched with those values"},
            key=key,
            unauthorised=unauthorised,
        ),
        routes={"/v1/models": completions.page(models, key=key, unauthorised=unauthorised)} if lists_models else {},
        port=port,
    )


def _error(message: Any, kind: str, code: str | None) -> dict[str, Any]:
    return {"object": "error", "message": message, "type": kind, "param": None, "code": code}


def _invalid(kind: str, field: str, message: str, given: Any) -> RefusedError:
    detail = [{"type": kind, "loc": ["body", field], "msg": message, "input": given}]
    return RefusedError(422, _error({"detail": detail}, "invalid_request_error", None))
