"""Completion servers that behave as if a model were behind them: it fills the built-in holes, and goes on with other code."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Mapping
from email.utils import formatdate
from typing import Any

from monkeycode_lsp.engines.remote.examination.holes import HOLES
from tests.servers import DONE, CompletionServer, Exchange, Script, choice, event

QWEN = "qwen2.5-coder"
_PSM = re.compile(r"<\|fim_prefix\|>(.*)<\|fim_suffix\|>(.*)<\|fim_middle\|>", re.DOTALL)
_SPM = re.compile(r"<\|fim_suffix\|>(.*)<\|fim_prefix\|>(.*)<\|fim_middle\|>", re.DOTALL)
_LONG_PROMPT = 1_000
LONG = [f" word{number}" for number in range(24)]

Mind = Callable[[Mapping[str, Any]], list[str]]
"""The pieces of what the model says to a request."""


def filled(before: str, after: str) -> list[str]:
    hole = next((hole for hole in HOLES if (hole.prefix, hole.suffix) == (before, after)), None)
    return [hole.expected] if hole else LONG


def fills_psm(asked: Mapping[str, Any]) -> list[str]:
    found = _PSM.search(asked["prompt"])
    return filled(*found.groups()) if found else ["print(1)"]


def fills_spm(asked: Mapping[str, Any]) -> list[str]:
    found = _SPM.search(asked["prompt"])
    return filled(*reversed(found.groups())) if found else ["print(1)"]


def echoes(asked: Mapping[str, Any]) -> list[str]:
    """No marker is a token of its vocabulary."""
    return [asked["prompt"]]


def inserts(asked: Mapping[str, Any]) -> list[str]:
    return filled(asked["prompt"], asked.get("suffix", ""))


def says(*pieces: str) -> Mind:
    return lambda asked: list(pieces)


def script(
    mind: Mind,
    *,
    first_s: float = 0.0,
    in_one_write: bool = False,
    most_stops: int = 100,
    refuses: str = "",
    longest: int = 1_000_000,
    keeps: bool = True,
) -> Script:
    """`first_s`: before anything is said to a long prompt.  `in_one_write`: as through a proxy that holds the stream back.

    `refuses`: a field.  `longest`: characters of a prompt.  `keeps`: its connections.
    """

    async def answer(exchange: Exchange) -> None:
        asked = exchange.request.json
        if refuses in asked:
            await exchange.respond(400, {"error": {"message": f"unknown field {refuses}"}})
            return
        if len(asked["prompt"]) > longest:
            await exchange.respond(400, {"error": {"message": "the prompt is too long"}})
            return
        if len(asked.get("stop", ())) > most_stops:
            await exchange.respond(400, {"error": {"message": f"at most {most_stops} stop strings", "param": "stop"}})
            return
        pieces = mind(asked)
        events = [event(choice(piece, "stop" if number == len(pieces) else None)) for number, piece in enumerate(pieces, 1)]
        await exchange.head(chunked=keeps)
        if first_s and len(asked["prompt"]) > _LONG_PROMPT:
            await asyncio.sleep(first_s)  # a model's time to think is what is measured
        if in_one_write:
            await exchange.send(b"".join([*events, DONE]))
        else:
            for each in [*events, DONE]:
                await exchange.send(each)
        await exchange.end()

    return answer


def chat() -> CompletionServer:
    """A model that fills in by words; all other routes are unknown."""

    async def answer(exchange: Exchange) -> None:
        if not exchange.request.path.endswith("/chat/completions"):
            await exchange.respond(404, {"error": "not found"})
            return
        before, _, after = exchange.request.json["messages"][-1]["content"].partition("<GAP>")
        await exchange.head()
        for piece in filled(before, after):
            await exchange.event({"choices": [{"index": 0, "delta": {"content": piece}}]})
        await exchange.event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        await exchange.send(DONE)
        await exchange.end()

    return CompletionServer(answer)


def server(
    mind: Mind = fills_psm,
    *,
    clock_s: float | None = 0.0,
    window: int = 8192,
    routes: Mapping[str, Script] | None = None,
    **how: Any,
) -> CompletionServer:
    """`clock_s`: how far its clock is ahead; None: it tells no time."""
    dated: dict[str, str] = {} if clock_s is None else {"Date": formatdate(time.time() + clock_s, usegmt=True)}

    async def cards(exchange: Exchange) -> None:
        await exchange.head(content_type="application/json", chunked=how.get("keeps", True), **dated)
        await exchange.send(json.dumps({"data": [{"id": QWEN, "max_model_len": window}]}).encode())
        await exchange.end()

    return CompletionServer(script(mind, **how), routes={"/v1/models": cards, **(routes or {})})
