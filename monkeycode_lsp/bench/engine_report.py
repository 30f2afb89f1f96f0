"""What the engine benchmark tells: parts with the figures of each system, and goals that are met or missed.  Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from monkeycode_lsp.bench.figures import Spread, paired_ratio

OURS, DIRECT, SERVER = "monkeycode", "llama-cpp-python", "llama-server"


class Answer(msgspec.Struct, frozen=True):
    """One ask, measured."""

    first_ms: float
    total_ms: float
    n_tokens: int
    reused: int
    read: int
    text: str = ""
    n_first: int = 1
    """Tokens that came with the first piece."""

    @property
    def tokens_per_second(self) -> float | None:
        """Of what came after the first piece; None: nothing did."""
        n, ms = self.n_tokens - self.n_first, self.total_ms - self.first_ms
        return n / ms * 1e3 if n > 0 and ms > 0 else None


class Asks(msgspec.Struct, frozen=True, rename="camel"):
    """All asks of one system in one part."""

    first_ms: Spread
    """To the first token."""
    total_ms: Spread
    tokens_per_second: float | None
    """Median of the asks; None: answers of one token."""
    reuse_share: float
    """Prompt tokens found in the KV cache, of all prompt tokens."""
    reused: int
    read: int
    generated: int

    @classmethod
    def of(cls, answers: Sequence[Answer]) -> Asks:
        speeds = [answer.tokens_per_second for answer in answers if answer.tokens_per_second]
        reused, read = sum(answer.reused for answer in answers), sum(answer.read for answer in answers)
        return cls(
            first_ms=Spread.of([answer.first_ms for answer in answers]),
            total_ms=Spread.of([answer.total_ms for answer in answers]),
            tokens_per_second=statistics.median(speeds) if speeds else None,
            reuse_share=reused / max(1, reused + read),
            reused=reused,
            read=read,
            generated=sum(answer.n_tokens for answer in answers),
        )


class Figure(msgspec.Struct, frozen=True):
    """One number, and the goal for it if there is one."""

    name: str
    value: float
    unit: str = ""
    goal: float | None = None
    bound: Literal["most", "least", "more", ""] = ""
    """Whether the goal is the most or the least that the value may be, or what it must be above."""
    ok: bool | None = None
    """None: there is no goal, or too little was measured to judge."""


def at_most(name: str, value: float, goal: float, unit: str = "") -> Figure:
    """A figure that should not be above its goal."""
    return Figure(name, value, unit, goal, "most", value <= goal)


def at_least(name: str, value: float, goal: float, unit: str = "") -> Figure:
    """A figure that should not be below its goal."""
    return Figure(name, value, unit, goal, "least", value >= goal)


def above(name: str, value: float, goal: float, unit: str = "") -> Figure:
    """A figure that should be above its goal."""
    return Figure(name, value, unit, goal, "more", value > goal)


class Part(msgspec.Struct, frozen=True, rename="camel"):
    """One situation."""

    name: str
    about: str
    """What was done, in one sentence."""
    systems: dict[str, Asks] = {}
    figures: tuple[Figure, ...] = ()
    left_out: str = ""
    """Why there are no figures; empty: there are."""


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """One run.  The field names are an interface: other programs read this JSON."""

    model: str
    machine: str
    busy_cores: float | None
    """Processors that others kept busy before the run; None: the system does not tell."""
    threads: int
    slots: int
    context_tokens: int
    batch_tokens: int
    drafts: str
    quick: bool
    systems: dict[str, str]
    """Each system's version, or why it is not here."""
    parts: tuple[Part, ...]
    version: int = 1

    @property
    def n_missed(self) -> int:
        """Goals that were not reached."""
        return sum(figure.ok is False for part in self.parts for figure in part.figures)


def asks(answers: Mapping[str, Sequence[Answer]]) -> dict[str, Asks]:
    """The figures of each system that answered."""
    return {name: Asks.of(of_one) for name, of_one in answers.items() if of_one}


def first_ratio(answers: Mapping[str, Sequence[Answer]], other: str, goal: float | None = None) -> tuple[Figure, ...]:
    """Our time to the first token against the other's, ask by ask; nothing if the other did not run."""
    if not answers.get(other):
        return ()
    ratio = paired_ratio([answer.first_ms for answer in answers[OURS]], [answer.first_ms for answer in answers[other]])
    name = f"time to first token / {other}"
    return (Figure(name, ratio, "x") if goal is None else at_most(name, ratio, goal, "x"),)


def speed_ratio(answers: Mapping[str, Sequence[Answer]], other: str, goal: float | None = None) -> tuple[Figure, ...]:
    """Our tokens per second against the other's, ask by ask; nothing if the other did not run."""
    pairs = [
        (ours, theirs)
        for our, their in zip(answers[OURS], answers.get(other, ()), strict=False)
        if (ours := our.tokens_per_second) and (theirs := their.tokens_per_second)
    ]
    if not pairs:
        return ()
    ratio = paired_ratio([pair[0] for pair in pairs], [pair[1] for pair in pairs])
    name = f"tokens per second / {other}"
    return (Figure(name, ratio, "x") if goal is None else at_least(name, ratio, goal, "x"),)
