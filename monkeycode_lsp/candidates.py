"""Different suggestions to choose from, when the user asks by key: drawn at a temperature, beside the likeliest one.

They are asked for all at once, when the likeliest one is there: so they share its KV cache, and what becomes of them
costs nothing but time.  They are not remembered: the next ask without a choice wants the likeliest one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

import msgspec

from monkeycode_lsp.domain import Scope, Suggestion
from monkeycode_lsp.engines.base import Engine
from monkeycode_lsp.filters import syntax
from monkeycode_lsp.generation import Generation, Request
from monkeycode_lsp.shaping import Shaping

LEAST_TEMPERATURE = 0.7
_SPARE = 1
"""So many more are drawn than wanted: some say the same."""
_MAYBE = -1.0
"""Mean log-probability of a suggestion of which it is not known."""


async def drawn(engine: Engine, shaping: Shaping, request: Request, scope: Scope, *, n: int, until: float) -> list[Suggestion]:
    """What is said to `request` by `until`, cleaned; a little more than `n`."""
    others = [Generation(engine, variant, scope) for variant in variants(request, n + _SPARE)]
    try:
        await asyncio.gather(*(other.wait(until) for other in others))
        texts = [(shaping.cleaned(other, explicit=True).text, other.confidence) for other in others if other.whole]
    finally:
        stopping = [other.stop() for other in others if other.running]
        if stopping:
            await asyncio.wait(stopping)
    return [Suggestion(text, confidence=confidence) for text, confidence in texts if text]


def variants(request: Request, n: int) -> list[Request]:
    """The same request with draws of its own each."""
    prompt = request.prompt
    samplings = [
        msgspec.structs.replace(prompt.sampling, temperature=max(prompt.sampling.temperature, LEAST_TEMPERATURE), seed=seed)
        for seed in range(1, n + 1)
    ]
    return [msgspec.structs.replace(request, prompt=msgspec.structs.replace(prompt, sampling=sampling, draft="")) for sampling in samplings]


def ranked(first: Sequence[Suggestion], others: Iterable[Suggestion], request: Request, n: int) -> list[Suggestion]:
    """At most `n` that differ, by parse errors and then by confidence; `first` are the likeliest, whatever is known of them."""
    known: dict[str, Suggestion] = {}
    for suggestion in (*first, *others):
        known.setdefault(_same(suggestion.text), suggestion)
    likeliest = {_same(suggestion.text) for suggestion in first}

    def rank(suggestion: Suggestion) -> tuple[int, bool, float]:
        return _n_faults(suggestion.text, request), _same(suggestion.text) not in likeliest, -_confidence(suggestion)

    return sorted(known.values(), key=rank)[:n]


def _confidence(suggestion: Suggestion) -> float:
    return _MAYBE if suggestion.confidence is None else suggestion.confidence


def _n_faults(text: str, request: Request) -> int:
    return syntax.n_faults(text, request.window, request.around)


def _same(text: str) -> str:
    """Two texts with different white space are no choice."""
    return "".join(text.split())
