"""What `monkeycode doctor --json` tells of each endpoint.  null: it was not found out, or there is nothing."""

from __future__ import annotations

import msgspec

from monkeycode_lsp.engines.remote.examination.examining import Examination


class EndpointReport(msgspec.Struct, frozen=True):
    """One endpoint.  Holds no key."""

    endpoint: str
    """Its address, and the model's name if that is set."""
    answers: bool
    role: str = ""
    """`only`, `first` (it gets all requests), `shares` (the work, with those of the same model) or `stands in`; empty: it does not work."""
    api: str = ""
    model: str = ""
    family: str = ""
    family_from: str = ""
    """`setting`, `name` or `server`."""
    order: str = ""
    """`psm` or `spm`, as proved; empty: no markers are given, or nothing is proved."""
    fills_in: bool | None = None
    likeness: dict[str, float] = {}
    """For each form that was tried, from 0 to 1; `plain` is the one without markers."""
    context_tokens: int | None = None
    first_ms: float | None = None
    warm_first_ms: float | None = None
    tokens_per_second: float | None = None
    prompt_tokens: int | None = None
    reused_tokens: int | None = None
    reuses_prefix: bool | None = None
    delivery: str = ""
    """`stream`, `held back` or `one piece`."""
    stop_strings: str = ""
    """`many`, `four` or `none`."""
    keeps_connection: bool | None = None
    certificate_days: float | None = None
    clock_ahead_s: float | None = None
    failure: str = ""


def of(found: Examination, *, endpoint: str, role: str) -> EndpointReport:
    """The examination, flat."""
    filling, line, pace = found.filling, found.line, found.pace
    asked_as = found.asked_as
    return EndpointReport(
        endpoint,
        answers=True,
        role=role,
        api=found.api,
        model=found.model,
        family=found.family.name if found.family else "",
        family_from=found.family_from,
        order=asked_as.order if asked_as and filling else "",
        fills_in=filling.fills if filling else None,
        likeness={attempt.form: round(attempt.score, 2) for attempt in filling.attempts} if filling else {},
        context_tokens=found.context_tokens,
        first_ms=_rounded(pace.first_ms) if pace else None,
        warm_first_ms=_rounded(pace.warm_first_ms) if pace else None,
        tokens_per_second=_rounded(pace.tokens_per_second) if pace else None,
        prompt_tokens=pace.prompt_tokens if pace else None,
        reused_tokens=pace.reused_tokens if pace else None,
        reuses_prefix=pace.reuses if pace else None,
        delivery=pace.delivery if pace else "",
        stop_strings=found.stops or "",
        keeps_connection=line.keeps if line else None,
        certificate_days=_rounded(line.certificate_days) if line else None,
        clock_ahead_s=_rounded(line.clock_s) if line else None,
        failure=found.error.message if found.error else "",
    )


def _rounded(figure: float | None) -> float | None:
    return None if figure is None else round(figure, 1)
