"""How fast an endpoint answers: a prompt that no cache knows, and the same one letter later, as when the user types on."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Literal, Protocol

import msgspec

from monkeycode_lsp import prompt
from monkeycode_lsp.domain import Chunk, Prompt, Usage, Window
from monkeycode_lsp.prompt import Family

N_TOKENS = 1000
"""Of the prompt, about."""
N_GENERATED = 32

_CHARS_PER_TOKEN = 2.6
"""Of the code below, for usual tokenizers."""
_ROOM = 200
"""Tokens of the window that the prompt leaves free."""
_LETTER = "r"
_FEWEST = 8
"""Tokens; fewer tell nothing about speed."""
_LONG_TEXT = 40
"""Characters that are surely more than one token."""
_TELLING_S = 0.1
"""Times below are lost in what the network and this machine do."""
_REUSED_RATIO = 0.6
_INSTANT_RATIO = 0.05
_FASTEST_PER_S = 5000.0
"""No model writes faster for one reader."""

Delivery = Literal["stream", "held back", "one piece"]
"""How the text came: as it was written; all events at the same instant, though it took long; as one event."""


class Streams(Protocol):
    """Who is timed."""

    def stream(self, asked: Prompt) -> AsyncGenerator[Chunk, None]:
        """The answer."""
        ...


class Pace(msgspec.Struct, frozen=True):
    """What was measured.  None: it cannot be told."""

    first_ms: float
    """To the first text of an answer to a new prompt."""
    warm_first_ms: float
    """The same with one letter more at the cursor."""
    prompt_tokens: int | None
    tokens_per_second: float | None
    reused_tokens: int | None
    """Of the second prompt, as the server reports."""
    reuses: bool | None
    """Whether the second prompt was not read anew as a whole."""
    delivery: Delivery


class _Answer(msgspec.Struct, frozen=True):
    first_s: float
    spread_s: float
    """From the first text to the last."""
    n_pieces: int
    n_tokens: int
    n_chars: int
    usage: Usage

    @property
    def per_s(self) -> float | None:
        """Tokens a second after the first ones."""
        if self.n_pieces < 2 or self.n_tokens < _FEWEST or not self.spread_s:  # noqa: PLR2004 - a distance needs two
            return None
        return self.n_tokens * (1 - 1 / self.n_pieces) / self.spread_s


async def measure(
    streams: Streams, family: Family | None, *, context_tokens: int | None, clock: Callable[[], float] = time.perf_counter
) -> Pace:
    """Two requests.  Raises an `EngineError`."""
    room = N_TOKENS if context_tokens is None else max(_ROOM, min(N_TOKENS, context_tokens - _ROOM))
    prefix, suffix = _code(int(room * _CHARS_PER_TOKEN), secrets.token_hex(8))
    cold = await _timed(streams, _prompt(prefix, suffix, family), clock)
    warm = await _timed(streams, _prompt(prefix + _LETTER, suffix, family), clock)
    delivery = _delivery(cold, warm)
    return Pace(
        first_ms=cold.first_s * 1e3,
        warm_first_ms=warm.first_s * 1e3,
        prompt_tokens=None if cold.usage.read is None else cold.usage.read + (cold.usage.reused or 0),
        tokens_per_second=max((answer.per_s or 0.0 for answer in (cold, warm)), default=0.0) or None if delivery == "stream" else None,
        reused_tokens=warm.usage.reused,
        reuses=_reuses(cold, warm, delivery),
        delivery=delivery,
    )


def _code(n_chars: int, nonce: str) -> tuple[str, str]:
    """Before and after the cursor.  Both begin with what no cache has seen, because either may come first."""
    steps = [f"def step_{number}(value, scale):\n    return value * {number} + scale - {number % 7}\n\n\n" for number in range(1, 200)]
    n_each = len(steps[-1])
    n_before, n_after = max(2, n_chars * 9 // 10 // n_each), max(1, n_chars // 10 // n_each)
    before = f"# {nonce}\n\n" + "".join(steps[:n_before])
    cursor, _, _ = steps[n_before].partition("return")
    return before + cursor, f"\n\n\n# {nonce}\n\n" + "".join(steps[n_before + 1 : n_before + 1 + n_after])


def _prompt(prefix: str, suffix: str, family: Family | None) -> Prompt:
    window = Window(prefix=prefix, suffix=suffix, language="python", path="")
    return prompt.render(window, (), family, max_tokens=N_GENERATED, session="pace")


async def _timed(streams: Streams, asked: Prompt, clock: Callable[[], float]) -> _Answer:
    start = clock()
    times: list[float] = []
    n_tokens = n_chars = 0
    usage = Usage()
    async with aclosing(streams.stream(asked)) as chunks:
        async for chunk in chunks:
            if chunk.text:
                times.append(clock())
                n_tokens += chunk.n_tokens
                n_chars += len(chunk.text)
            usage = chunk.usage or usage
    first, last = (times[0], times[-1]) if times else (clock(),) * 2
    return _Answer(first - start, last - first, len(times), usage.generated or n_tokens or len(times), n_chars, usage)


def _delivery(*answers: _Answer) -> Delivery:
    if all(answer.n_pieces == 1 and (answer.n_tokens >= _FEWEST or answer.n_chars > _LONG_TEXT) for answer in answers):
        return "one piece"
    return "held back" if all(map(_came_at_once, answers)) else "stream"


def _came_at_once(answer: _Answer) -> bool:
    return (
        answer.n_pieces >= _FEWEST
        and answer.first_s > _TELLING_S
        and answer.spread_s < answer.first_s * _INSTANT_RATIO
        and answer.spread_s * _FASTEST_PER_S < answer.n_tokens
    )


def _reuses(cold: _Answer, warm: _Answer, delivery: Delivery) -> bool | None:
    if warm.usage.reused is not None:
        return warm.usage.reused > 0
    if delivery != "stream" or cold.first_s < _TELLING_S:
        return None  # the times are those of writing, or too short
    return warm.first_s < cold.first_s * _REUSED_RATIO
