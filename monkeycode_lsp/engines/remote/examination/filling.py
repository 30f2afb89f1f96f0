"""Proof that a model fills in the middle: built-in holes, filled in each order in which its family can be asked.

Temperature 0 and no stop strings, so that what comes is what the model says.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Literal, Protocol

import msgspec

from monkeycode_lsp import prompt
from monkeycode_lsp.domain import Chunk, Prompt, Sampling
from monkeycode_lsp.engines.remote.examination import holes
from monkeycode_lsp.engines.remote.proofs import Order, in_order
from monkeycode_lsp.prompt import Family

_CLEARLY = 0.2
"""By how much another form must be better than the family's own; less may be chance."""

Form = Literal["psm", "spm", "plain"]
"""How a hole was put to the model; plain: without markers, both halves where the server takes them."""


class Asked(Protocol):
    """Who fills them."""

    @property
    def marks(self) -> bool:
        """Whether markers are given to it, as far as it is known."""
        ...

    def stream(self, asked: Prompt) -> AsyncGenerator[Chunk, None]:
        """The answer."""
        ...


class Attempt(msgspec.Struct, frozen=True):
    """All holes in one form."""

    form: Form
    score: float
    """Mean likeness of the answers."""
    is_silent: bool = False
    """Nothing came for any of them."""
    shows_markers: bool = False
    """Markers came back as text."""

    @property
    def fills(self) -> bool:
        """A model that has read other models' markers as text guesses some; one that knows its own as tokens says none."""
        return self.score == 1.0 or (self.score >= holes.FILLED and not self.shows_markers)


class Filling(msgspec.Struct, frozen=True):
    """What was proved."""

    order: Order | None
    """In which to ask; None: without markers."""
    fills: bool
    """Whether the model fills in like that."""
    attempts: tuple[Attempt, ...]

    @property
    def score(self) -> float:
        """In the form that was chosen."""
        return next((attempt.score for attempt in self.attempts if attempt.form == (self.order or "plain")), 0.0)


async def prove(asked: Asked, family: Family | None, orders: Iterable[Order] = ()) -> Filling:
    """Three to nine short requests.  `orders`: those to try with `family`, the preferred one first.  Raises an `EngineError`."""
    attempts: list[Attempt] = []
    for order in orders if asked.marks else ():
        attempt = await _attempt(asked, in_order(family, order) if family else None, order)
        if not asked.marks:  # the server turned out to be one that takes none
            return _unmarked(msgspec.structs.replace(attempt, form="plain"))
        attempts.append(attempt)
        if attempt.score == 1.0:
            break  # none can be better
    if not attempts:
        return _unmarked(await _attempt(asked, None, "plain"))
    own, *others = attempts
    best = next((other for other in others if other.score > own.score + _CLEARLY), own)
    if best.fills:
        return Filling(_order(best), fills=True, attempts=tuple(attempts))
    plain = await _attempt(asked, None, "plain")
    usable = best.score > plain.score + _CLEARLY and not (best.is_silent or best.shows_markers)
    return Filling(_order(best) if usable else None, fills=plain.fills and not usable, attempts=(*attempts, plain))


def _unmarked(attempt: Attempt) -> Filling:
    return Filling(None, fills=attempt.fills, attempts=(attempt,))


def _order(attempt: Attempt) -> Order | None:
    return None if attempt.form == "plain" else attempt.form


async def _attempt(asked: Asked, family: Family | None, form: Form) -> Attempt:
    said = [await _said(asked, _prompt(hole, family)) for hole in holes.HOLES]
    ended = [_ended(text, family) for text in said]
    return Attempt(
        form,
        sum(map(holes.likeness, holes.HOLES, ended)) / len(ended),
        is_silent=not any(map(str.strip, said)),
        shows_markers=family is not None and any(holes.shows(family.markers, text) for text in said),
    )


def _prompt(hole: holes.Hole, family: Family | None) -> Prompt:
    rendered = prompt.render(hole.window, (), family, max_tokens=holes.MAX_TOKENS, sampling=Sampling(temperature=0.0), session="holes")
    return msgspec.structs.replace(rendered, stop=())


def _ended(said: str, family: Family | None) -> str:
    """Up to the first control token that a server gives as text."""
    ends = [said.find(stop) for stop in family.stop] if family else []
    return said[: min((end for end in ends if end >= 0), default=len(said))]


async def _said(asked: Asked, what: Prompt) -> str:
    async with aclosing(asked.stream(what)) as chunks:
        return "".join([chunk.text async for chunk in chunks])
