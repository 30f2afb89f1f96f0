"""SGLang's OpenAI-compatible server: it asks for no model, overlooks `suffix`, and says most refusals in the stream."""

from __future__ import annotations

from typing import Any

from tests.fakes import completions
from tests.fakes.completions import ANSWER, Asked, Cache
from tests.servers import DONE, CompletionServer, Exchange, status


def server(
    *,
    model: str = "Qwen/Qwen2.5-Coder-1.5B",
    answer: tuple[str, ...] = ANSWER,
    key: str = "",
    context_tokens: int = 32_768,
    template: str | None = None,
    tells_cached: bool = True,
    priority: bool = False,
    tells_settings: bool = True,
    port: int = 0,
) -> CompletionServer:
    """Options of the real one by other names.

    `template`: `--completion-template`, which makes a prompt of `prompt` and `suffix`.  `tells_cached`: `--enable-cache-report`.
    `priority`: `--enable-priority-scheduling`; without it the fake is as strict as with `--abort-on-priority-when-disabled`.
    `tells_settings`: whether the page about them is open.
    """
    cache = Cache()

    async def complete(exchange: Exchange, asked: Asked) -> None:
        prompt = asked["prompt"]
        if not prompt.strip():
            await exchange.respond(400, _error("Prompt cannot be empty or whitespace only"))
            return
        if template is not None and asked.get("suffix") != "":
            prompt = f"<{template}:prefix>{prompt}<{template}:suffix>{asked.get('suffix')}<{template}:middle>"
        n_prompt = completions.n_tokens(prompt)
        if n_prompt >= context_tokens:
            message = f"The input ({n_prompt} tokens) is longer than the model's context length ({context_tokens} tokens)."
            await _give_up(exchange, message)
            return
        if asked.get("priority") is not None and not priority:
            await _give_up(exchange, "Using priority is disabled for this server. Please send a new request without a priority.")
            return
        cached = cache.reused(prompt)
        figures = completions.usage(prompt, answer, asked, cached=(cached or None) if tells_cached else None)
        await completions.stream(exchange, answer, asked, usage=figures)

    card = {"id": model, "object": "model", "created": 1, "owned_by": "sglang", "root": model, "max_model_len": context_tokens}
    facts = {"model_path": model, "tokenizer_path": model, "is_generation": True}
    settings = {**facts, "completion_template": template, "enable_priority_scheduling": priority, "version": "0.5.4"}
    return CompletionServer(
        completions.serve("/v1/completions", answer=complete, key=key),
        routes={
            "/v1/models": completions.page({"object": "list", "data": [card]}, key=key),
            "/get_model_info": completions.page(facts, key=key),
            "/get_server_info": completions.page(settings, key=key) if tells_settings else status(401, {"error": "Unauthorized"}),
            "/health": status(200, b""),
        },
        port=port,
    )


async def _give_up(exchange: Exchange, message: str) -> None:
    """The stream has begun already."""
    await exchange.head()
    await exchange.event({"error": _error(message)})
    await exchange.send(DONE)
    await exchange.end()


def _error(message: str) -> dict[str, Any]:
    return {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": 400}
