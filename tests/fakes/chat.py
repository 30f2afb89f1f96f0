"""A server that only chats: it has no other route, and its model wraps code in Markdown if it is let."""

from __future__ import annotations

from typing import Any

from tests.fakes import completions
from tests.fakes.completions import ANSWER, Asked, RefusedError
from tests.servers import CompletionServer, Exchange

_MOST_STOPS = 4


def server(
    *,
    model: str = "gpt-4o-mini",
    answer: tuple[str, ...] = ANSWER,
    thought: str = "",
    key: str = "",
    context_tokens: int = 16_384,
    refuses: tuple[str, ...] = (),
    port: int = 0,
) -> CompletionServer:
    """`thought`: what the model says to itself first, in the field of its own.  `refuses`: fields, as models that think refuse some."""

    async def complete(exchange: Exchange, asked: Asked) -> None:
        for name in sorted(set(asked) & set(refuses)):
            instead = " Use 'max_completion_tokens' instead." if name == "max_tokens" else ""
            message = f"Unsupported parameter: '{name}' is not supported with this model.{instead}"
            raise _refused(400, message, param=name, code="unsupported_parameter")
        if asked.get("model") != model:
            raise _refused(404, f"The model `{asked.get('model')}` does not exist.", code="model_not_found")
        if len(asked.get("stop") or ()) > _MOST_STOPS:
            raise _refused(400, "Invalid 'stop': array too long.", param="stop", code="array_above_max_length")
        prompt = "\n".join(message["content"] for message in asked["messages"])
        n_prompt = completions.n_tokens(prompt)
        if n_prompt > context_tokens:
            message = (
                f"This model's maximum context length is {context_tokens} tokens. However, your messages resulted in {n_prompt} tokens."
            )
            raise _refused(400, message, param="messages", code="context_length_exceeded")
        figures = completions.usage(prompt, answer, asked, cached=0)
        pieces = ("", *answer) if thought else answer

        def event(text: str, finish: str | None) -> dict[str, Any]:
            made = completions.chat_event(text, finish)
            if thought and not text and finish is None:
                made["choices"][0]["delta"] = {"role": "assistant", "content": None, "reasoning_content": thought}
            return made

        await completions.stream(exchange, pieces, asked, event=event, usage=figures)

    refused = _refused(401, "Incorrect API key provided.", code="invalid_api_key")
    unauthorised = refused.code, refused.body
    models = {"object": "list", "data": [{"id": model, "object": "model", "owned_by": "somebody"}]}
    return CompletionServer(
        completions.serve("/v1/chat/completions", answer=complete, key=key, unauthorised=unauthorised),
        routes={"/v1/models": completions.page(models, key=key, unauthorised=unauthorised)},
        port=port,
    )


def _refused(status: int, message: str, *, param: str | None = None, code: str | None = None) -> RefusedError:
    error: dict[str, Any] = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return RefusedError(status, {"error": error})
