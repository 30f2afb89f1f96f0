"""How often something was shown, what became of it, and how long it took: summed up from outcomes (pure)."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from monkeycode_lsp.domain import Fate, Outcome, OutcomeKind

_OVERTAKEN = frozenset({OutcomeKind.SUPERSEDED, OutcomeKind.CANCELLED})
_DECIDED = frozenset({Fate.ACCEPTED.value, Fate.TYPED.value, Fate.PARTIAL.value, Fate.REJECTED.value, Fate.IGNORED.value})
_DETAIL = re.compile(r"\s*\([^()]*\)")
_MOST_REASONS = 12


class Quantiles(msgspec.Struct, frozen=True, rename="camel"):
    """Of a time, in milliseconds."""

    n: int
    p50_ms: float
    p95_ms: float


class Figures(msgspec.Struct, frozen=True, rename="camel"):
    """Of some asks."""

    n_asks: int
    """Those that a newer one overtook or that the editor cancelled not among them."""
    n_overtaken: int
    n_shown: int
    n_quiet: int
    """Where there was something, and it was better not to show it."""
    n_sure: int
    """Shown or kept quiet, and the model said how sure it was: no others can be kept quiet."""
    show_rate: float | None
    """Of all asks; None: there were none."""
    quiet_rate: float | None
    """Of `n_sure`."""
    not_shown: dict[str, int]
    """Why nothing was shown, the commonest reason first."""
    n_suggestions: int
    """Of which it is known what became; one that was typed along with counts once."""
    fates: dict[str, int]
    taken_rate: float | None
    """Of the suggestions: those that were accepted, or typed to the end."""
    taken_characters_rate: float | None
    """Of the characters that were shown."""
    kept_rate: dict[str, float]
    """Of the characters that were taken: those still there after so many seconds."""
    total: Quantiles | None
    first: Quantiles | None
    """From the engine's start to its first text."""
    stages: dict[str, Quantiles]


class Group(msgspec.Struct, frozen=True, rename="camel"):
    """The asks of one model in one language."""

    model: str
    """Empty: there was nothing of any model to judge."""
    language: str
    figures: Figures


class Summary(msgspec.Struct, frozen=True, rename="camel"):
    """Everything, and by model and language; the largest group first."""

    since: float | None
    """Unix time of the first ask; None: there was none."""
    whole: Figures
    groups: tuple[Group, ...]


def summary(outcomes: Sequence[Outcome]) -> Summary:
    """What these outcomes add up to."""
    by: defaultdict[tuple[str, str], list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by[outcome.model, outcome.language].append(outcome)
    groups = [Group(model, language, figures(some)) for (model, language), some in by.items()]
    groups.sort(key=lambda group: (-group.figures.n_asks, group.model, group.language))
    return Summary(min((outcome.at for outcome in outcomes), default=None), figures(outcomes), tuple(groups))


def value(outcomes: Sequence[Outcome]) -> Any:
    """The summary as plain values, for editors."""
    return msgspec.to_builtins(summary(outcomes))


def figures(outcomes: Iterable[Outcome]) -> Figures:
    """Of these asks together."""
    asks = list(outcomes)
    ended = [ask for ask in asks if ask.kind not in _OVERTAKEN]
    shown = [ask for ask in ended if ask.kind is OutcomeKind.SHOWN]
    n_quiet = sum(ask.kind is OutcomeKind.QUIET for ask in ended)
    n_sure = n_quiet + sum(ask.confidence is not None for ask in shown)
    reasons = Counter(_DETAIL.sub("", ask.reason) for ask in ended if ask.kind is not OutcomeKind.SHOWN)
    decided = [ask for ask in shown if ask.fate in _DECIDED]
    fates = Counter(ask.fate for ask in decided)
    n_characters = sum(max(ask.n_shown, ask.n_taken) for ask in decided)
    return Figures(
        n_asks=len(ended),
        n_overtaken=len(asks) - len(ended),
        n_shown=len(shown),
        n_quiet=n_quiet,
        n_sure=n_sure,
        show_rate=_rate(len(shown), len(ended)),
        quiet_rate=_rate(n_quiet, n_sure),
        not_shown=dict(reasons.most_common(_MOST_REASONS)),
        n_suggestions=len(decided),
        fates=dict(fates.most_common()),
        taken_rate=_rate(fates[Fate.ACCEPTED.value] + fates[Fate.TYPED.value], len(decided)),
        taken_characters_rate=_rate(sum(ask.n_taken for ask in decided), n_characters),
        kept_rate=_kept(decided),
        total=_quantiles(ask.total_ms for ask in shown),
        first=_quantiles(ask.first_ms for ask in ended if ask.first_ms is not None),
        stages=_stages(ended),
    )


def _stages(asks: Iterable[Outcome]) -> dict[str, Quantiles]:
    times: dict[str, list[float]] = {}
    for ask in asks:
        for stage, ms in ask.stages_ms.items():
            times.setdefault(stage, []).append(ms)
    return {stage: found for stage, each in times.items() if (found := _quantiles(each)) is not None}


def _kept(taken: Iterable[Outcome]) -> dict[str, float]:
    """Longer suggestions weigh more."""
    sums: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for ask in taken:
        for after, share in ask.kept.items():
            sums[after][0] += share * ask.n_taken
            sums[after][1] += ask.n_taken
    return {after: kept / whole for after, (kept, whole) in sorted(sums.items(), key=lambda item: (len(item[0]), item[0])) if whole}


def _quantiles(times: Iterable[float]) -> Quantiles | None:
    each = sorted(time for time in times if math.isfinite(time))
    return Quantiles(len(each), _at(each, 0.5), _at(each, 0.95)) if each else None


def _at(each: Sequence[float], share: float) -> float:
    return each[min(len(each) - 1, int(share * len(each)))]


def _rate(part: float, whole: float) -> float | None:
    return part / whole if whole else None
