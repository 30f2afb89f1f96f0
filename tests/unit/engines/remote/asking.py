"""What the tests of the remote engine share: an engine for one address, a prompt, and a whole answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

from monkeycode_lsp import config
from monkeycode_lsp.domain import Chunk, Control, Plain, Prompt
from monkeycode_lsp.engines.remote.engine import RemoteEngine

QWEN = "qwen2.5-coder"


@asynccontextmanager
async def engine(
    url: str,
    *,
    told: list[str] | None = None,
    environ: Mapping[str, str] | None = None,
    remote: Mapping[str, Any] | None = None,
    **endpoint: Any,
) -> AsyncIterator[RemoteEngine]:
    settings = config.Remote(endpoints=(config.Endpoint(url=url, **{"model": QWEN, **endpoint}),), **(remote or {}))
    made = RemoteEngine(settings=settings, notify=(told if told is not None else []).append, environ=environ or {})
    try:
        yield made
    finally:
        await made.aclose()


def fim(prefix: str = "a", suffix: str = "b", **more: Any) -> Prompt:
    """A prompt with Qwen's markers."""
    segments = (
        Control("<|fim_prefix|>"),
        Plain(prefix),
        Control("<|fim_suffix|>"),
        Plain(suffix),
        Control("<|fim_middle|>"),
    )
    return Prompt(segments=segments, prefix=prefix, suffix=suffix, **more)


def plain(prefix: str = "a", suffix: str = "b", **more: Any) -> Prompt:
    """A prompt for a model that is not known to fill in."""
    return Prompt(segments=(Plain(prefix),), prefix=prefix, suffix=suffix, fim=False, **more)


async def chunks(asked: RemoteEngine, prompt: Prompt | None = None) -> list[Chunk]:
    async with aclosing(asked.stream(prompt or fim())) as stream:
        return [chunk async for chunk in stream]


async def answer(asked: RemoteEngine, prompt: Prompt | None = None) -> str:
    """The text of a whole answer: exactly the last chunk has `finish`."""
    got = await chunks(asked, prompt)
    assert [chunk.finish is not None for chunk in got] == [False] * (len(got) - 1) + [True]
    return "".join(chunk.text for chunk in got)
