"""What the fakes of OpenAI's kind of server have in common: keys, refusals, a stream that stops where it is told to.

A fake behaves as the real server does and refuses what the real one refuses.  It counts four characters as one token,
and the beginning that a prompt shares with the one before as read from the cache.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from tests.servers import DONE, Exchange, Script, choice, status

ANSWER = ("a", " + ", "b")

Asked = Mapping[str, Any]
"""The body of a request."""


class RefusedError(Exception):
    """The server says no."""

    def __init__(self, code: int, body: Any, **headers: str) -> None:
        super().__init__(code)
        self.code = code
        self.body = body
        self.headers = headers


def serve(
    *paths: str,
    answer: Callable[[Exchange, Asked], Awaitable[None]],
    missing: Any = None,
    key: str = "",
    unauthorised: tuple[int, Any] = (401, {"error": "Unauthorized"}),
) -> Script:
    """Answers these paths; another one is not there.  `key`: the only one that is let in; empty: nobody needs one."""

    async def script(exchange: Exchange) -> None:
        request = exchange.request
        if key and request.headers.get("authorization") != f"Bearer {key}":
            await exchange.respond(*unauthorised)
            return
        if request.path not in paths:
            await exchange.respond(404, {"detail": "Not Found"} if missing is None else missing)
            return
        try:
            await answer(exchange, request.json)
        except RefusedError as exc:
            await exchange.respond(exc.code, exc.body, **exc.headers)

    return script


def page(body: Any, *, key: str = "", unauthorised: tuple[int, Any] = (401, {"error": "Unauthorized"})) -> Script:
    """A page that is read with GET."""

    async def script(exchange: Exchange) -> None:
        if key and exchange.request.headers.get("authorization") != f"Bearer {key}":
            await exchange.respond(*unauthorised)
        else:
            await status(200, body)(exchange)

    return script


def said(texts: Iterable[str], asked: Asked) -> tuple[list[str], str]:
    """The pieces up to the first stop string or the limit, and why they end."""
    pieces = list(texts)
    limit = asked.get("max_tokens") or asked.get("max_completion_tokens")
    finish = "stop"
    if limit is not None and len(pieces) > limit:
        pieces, finish = pieces[:limit], "length"
    whole = "".join(pieces)
    stops = asked.get("stop") or []
    found = [at for at in map(whole.find, [stops] if isinstance(stops, str) else stops) if at >= 0]
    if not found:
        return pieces, finish
    kept: list[str] = []
    left = min(found)
    for piece in pieces:
        kept.append(piece[:left])
        left -= len(kept[-1])
    return [piece for piece in kept if piece], "stop"


def n_tokens(text: str) -> int:
    return len(text) // 4 + 1


class Cache:
    """The prompt before this one.

    The mutable state is that prompt; it changes in `reused` only.
    """

    def __init__(self) -> None:
        self._last = ""

    def reused(self, prompt: str) -> int:
        """How many tokens of `prompt` need not be read."""
        shared = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(self._last, prompt, strict=False)))
        self._last = prompt
        return shared // 4


Event = Callable[[str, str | None], dict[str, Any]]


def chat_event(text: str, finish: str | None = None) -> dict[str, Any]:
    """One event of a chat, as Mistral's fill-in route sends it too."""
    return {
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": finish}],
    }


async def stream(
    exchange: Exchange,
    texts: Iterable[str],
    asked: Asked,
    *,
    event: Event = choice,
    usage: Mapping[str, Any] | None = None,
    usage_with_last: bool = False,
) -> None:
    """The answer as events: the finish reason in one of its own, usage after it, as the servers do.

    `usage_with_last`: it comes unasked, in the event that has the finish reason.
    """
    pieces, finish = said(texts, asked)
    if not asked.get("stream"):
        whole = event("".join(pieces), finish)
        for one in whole["choices"]:
            if "delta" in one:
                one["message"] = one.pop("delta")
        await exchange.respond(200, {**whole, "usage": usage})
        return
    await exchange.head()
    for piece in pieces:
        await exchange.event(_scored(event(piece, None), asked))
    last = event("", finish)
    if usage is not None and usage_with_last:
        last["usage"] = usage
    await exchange.event(last)
    if usage is not None and not usage_with_last and (asked.get("stream_options") or {}).get("include_usage"):
        await exchange.event({**event("", None), "choices": [], "usage": usage})
    await exchange.send(DONE)
    await exchange.end()


LOGPROB = -0.25
"""Of every token."""


def _scored(said: dict[str, Any], asked: Asked) -> dict[str, Any]:
    """With the log-probability of its one token, if that is asked for."""
    if asked.get("logprobs") is not None:
        for one in said["choices"]:
            one["logprobs"] = {"text_offset": [0], "tokens": [one.get("text")], "token_logprobs": [LOGPROB], "top_logprobs": [None]}
    return said


def usage(prompt: str, texts: Iterable[str], asked: Asked, *, cached: int | None = None) -> dict[str, Any]:
    """The figures in OpenAI's form; `cached` None: the server does not tell."""
    n_prompt, n_said = n_tokens(prompt), len(said(texts, asked)[0])
    figures: dict[str, Any] = {"prompt_tokens": n_prompt, "completion_tokens": n_said, "total_tokens": n_prompt + n_said}
    if cached is not None:
        figures["prompt_tokens_details"] = {"cached_tokens": cached}
    return figures
