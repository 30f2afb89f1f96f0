"""TensorRT-LLM's OpenAI-compatible server (`trtllm-serve`), which refuses every field that it does not know, and `suffix`."""

from __future__ import annotations

from typing import Any

from tests.fakes import completions
from tests.fakes.completions import ANSWER, Asked, Cache, RefusedError
from tests.servers import CompletionServer, Exchange, status

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
        "lora_request",
        "prompt_ignore_length",
        "use_beam_search",
        "top_k",
        "top_p_min",
        "min_p",
        "repetition_penalty",
        "length_penalty",
        "early_stopping",
        "stop_token_ids",
        "include_stop_str_in_output",
        "ignore_eos",
        "min_tokens",
        "skip_special_tokens",
        "spaces_between_special_tokens",
        "truncate_prompt_tokens",
        "return_context_logits",
        "detokenize",
        "thinking_token_budget",
        "add_special_tokens",
        "response_format",
        "disaggregated_params",
        "conversation_params",
    }
)


def server(
    *,
    model: str = "Qwen2.5-Coder-1.5B",
    answer: tuple[str, ...] = ANSWER,
    context_tokens: int = 8192,
    priority: bool = True,
    port: int = 0,
) -> CompletionServer:
    """`priority`: whether this release knows the field.  It has no keys, and completes for any name of a model."""
    known = _KNOWN | {"priority"} if priority else _KNOWN
    cache = Cache()

    async def complete(exchange: Exchange, asked: Asked) -> None:
        for name in sorted(set(asked) - known):
            raise _invalid("extra_forbidden", name, "Extra inputs are not permitted", asked[name])
        if "model" not in asked:
            raise _invalid("missing", "model", "Field required", dict(asked))
        if asked.get("suffix"):
            raise _invalid("value_error", "", "Value error, suffix is not supported", dict(asked))
        if not 0 <= asked.get("priority", 0.5) <= 1:
            raise _invalid("less_than_equal", "priority", "Input should be less than or equal to 1", asked["priority"])
        n_prompt = completions.n_tokens(asked["prompt"])
        if n_prompt > context_tokens:
            message = f"The sum of prompt length ({float(n_prompt)}), query length (0) should not exceed max_num_tokens ({context_tokens})"
            raise RefusedError(400, {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": 400})
        cached = cache.reused(asked["prompt"])
        await completions.stream(exchange, answer, asked, usage=completions.usage(asked["prompt"], answer, asked, cached=cached))

    card = {"id": model, "object": "model", "created": 1, "owned_by": "tensorrt_llm"}
    return CompletionServer(
        completions.serve("/v1/completions", answer=complete),
        routes={
            "/v1/models": status(200, {"object": "list", "data": [card]}),
            "/health": status(200, b""),
            "/version": status(200, {"version": "1.2.0"}),
        },
        port=port,
    )


def _invalid(kind: str, field: str, message: str, given: Any) -> RefusedError:
    """A validation error as its framework prints it: a list in Python's own notation, what was given included."""
    where = ("body", field) if field else ("body",)
    return RefusedError(400, {"error": str([{"type": kind, "loc": where, "msg": message, "input": given}])})
