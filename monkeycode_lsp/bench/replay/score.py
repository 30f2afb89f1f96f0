"""What one replay shows in figures (pure).

Words.  An ask is answered *fresh* when its text is there before the next key, and *stale* when it comes later;
white space alone is no text, because nobody sees it.
A request is *useful* when its answer was shown fresh, or what is left of it later; it counts once.
A *chance* is a key after which the author pauses for at least as long as the backend takes.
A request is *needless* when it is not useful.
What is shown is judged by the requests alone, whatever the product says about it: it must be a piece of some
answer, at the point that the text before the cursor has come to.  Else it is a *wrong hit*.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from monkeycode_lsp.bench.replay.observed import Observed, Replied, Sent, Typed

RECALLED = ("typed-through", "memory", "disk", "shared")
_BEFORE_CHARACTERS = 24
"""So much of the text before an answer must agree with the text before the cursor, without white space."""
_FIRST_CHARACTERS = 4
"""The author went on to type a suggestion when its first characters are what came next."""
_SPACE = re.compile(r"\s+")


class Figures(msgspec.Struct, frozen=True):
    """Counts of one run of one system; `rates` makes shares of them."""

    system: str
    n_keys: int = 0
    n_asks: int = 0
    """Keys after which the editor asked."""
    n_decided: int = 0
    """Asks that were answered without the backend, or for which it was asked: what was not dropped while it waited."""
    n_requests: int = 0
    n_aborted: int = 0
    n_useful: int = 0
    n_background: int = 0
    """Requests that nobody waited for; not among `n_requests`."""
    n_background_aborted: int = 0
    n_background_useful: int = 0
    n_fresh: int = 0
    n_stale: int = 0
    fresh_by_origin: dict[str, int] = {}
    n_drafts: int = 0
    n_drafts_confirmed: int = 0
    n_wrong: int = 0
    """Text shown that no answer says there."""
    n_recalled: int = 0
    """Fresh without the backend; adopted answers are not among them."""
    n_recalled_decidable: int = 0
    """Of these: the author went on to type there, so that one can tell."""
    n_recalled_not_typed: int = 0
    """Of these: something else."""
    n_chances: int = 0
    n_chances_kept: int = 0
    waits_ms: tuple[float, ...] = ()
    """From the key to its text, of every fresh answer, sorted."""
    wrong_keys: tuple[int, ...] = ()
    """The first keys with a wrong hit."""
    n_failed: int = 0


class Rates(msgspec.Struct, frozen=True, rename="camel"):
    """What is printed and compared.  Shares where nothing else is said; None: nothing to take a share of."""

    system: str
    keys: int
    requests_per_key: float | None
    aborted_per_key: float | None
    background_per_key: float | None
    fresh_per_key: float | None
    stale_per_key: float | None
    useful: float | None
    background_useful: float | None
    recalled_of_asks: float | None
    recalled_of_decided: float | None
    adopted_of_asks: float | None
    fresh_by_origin: dict[str, int]
    drafts: int
    drafts_confirmed: int
    wrong_hits: int
    failed: int
    not_typed_next: float | None
    chances_kept: float | None
    needless_suppressed: float | None
    p50_ms: float | None
    p90_ms: float | None
    p99_ms: float | None


def figures(observed: Observed, *, latency_s: float) -> Figures:
    """Of one run.  `latency_s` is the backend's: it says what a chance is."""
    typed, replied = observed.typed, observed.replied
    fresh = list(_fresh(typed, replied))
    wanted = [sent for sent in observed.sent if not sent.background]
    ahead = [sent for sent in observed.sent if sent.background]
    sources = _sources(observed, fresh)
    useful = {id(sent) for sent in sources.values() if sent is not None}
    wrong = [index for index, sent in sources.items() if sent is None]
    recalled = [index for index in fresh if replied[index].origin in RECALLED]
    decidable = [index for index in recalled if typed[index].then]
    chances = {index for index in range(len(typed)) if _next_at(typed, index) - typed[index].at >= latency_s}
    return Figures(
        system=observed.system,
        n_keys=len(typed),
        n_asks=sum(reply.at is not None for reply in replied),
        n_decided=len(wanted) + sum(reply.origin in RECALLED for reply in replied),
        n_requests=len(wanted),
        n_aborted=sum(sent.aborted for sent in wanted),
        n_useful=sum(id(sent) in useful for sent in wanted),
        n_background=len(ahead),
        n_background_aborted=sum(sent.aborted for sent in ahead),
        n_background_useful=sum(id(sent) in useful for sent in ahead),
        n_fresh=len(fresh),
        n_stale=sum(bool(reply.text.strip()) for reply in replied) - len(fresh),
        fresh_by_origin=dict(Counter(replied[index].origin for index in fresh)),
        n_drafts=sum(bool(sent.draft) for sent in observed.sent),
        n_drafts_confirmed=sum(bool(sent.draft) and sent.answer.startswith(sent.draft) for sent in observed.sent),
        n_wrong=len(wrong),
        n_recalled=len(recalled),
        n_recalled_decidable=len(decidable),
        n_recalled_not_typed=sum(not _typed_next(replied[index].text, typed[index].then) for index in decidable),
        n_chances=len(chances),
        n_chances_kept=len(chances.intersection(fresh)),
        waits_ms=tuple(sorted((_at(replied[index]) - typed[index].at) * 1e3 for index in fresh)),
        wrong_keys=tuple(wrong[:20]),
        n_failed=observed.n_failed,
    )


def rates(of: Figures) -> Rates:
    """Shares and quantiles."""
    n_needless = of.n_requests - of.n_useful
    return Rates(
        system=of.system,
        keys=of.n_keys,
        requests_per_key=_share(of.n_requests, of.n_keys),
        aborted_per_key=_share(of.n_aborted, of.n_keys),
        background_per_key=_share(of.n_background, of.n_keys),
        fresh_per_key=_share(of.n_fresh, of.n_keys),
        stale_per_key=_share(of.n_stale, of.n_keys),
        useful=_share(of.n_useful, of.n_requests),
        background_useful=_share(of.n_background_useful, of.n_background),
        recalled_of_asks=_share(of.n_recalled, of.n_asks),
        recalled_of_decided=_share(of.n_recalled, of.n_decided),
        adopted_of_asks=_share(of.fresh_by_origin.get("adopted", 0), of.n_asks),
        fresh_by_origin=of.fresh_by_origin,
        drafts=of.n_drafts,
        drafts_confirmed=of.n_drafts_confirmed,
        wrong_hits=of.n_wrong,
        failed=of.n_failed,
        not_typed_next=_share(of.n_recalled_not_typed, of.n_recalled_decidable),
        chances_kept=_share(of.n_chances_kept, of.n_chances),
        needless_suppressed=_share(of.n_keys - of.n_chances - n_needless, of.n_keys - of.n_chances),
        p50_ms=_quantile(of.waits_ms, 0.5),
        p90_ms=_quantile(of.waits_ms, 0.9),
        p99_ms=_quantile(of.waits_ms, 0.99),
    )


def _fresh(typed: Sequence[Typed], replied: Sequence[Replied]) -> Iterator[int]:
    for index, reply in enumerate(replied):
        if reply.text.strip() and not reply.superseded and _at(reply) < _next_at(typed, index):
            yield index


def _at(reply: Replied) -> float:
    return float("inf") if reply.at is None else reply.at


def _next_at(typed: Sequence[Typed], index: int) -> float:
    return typed[index + 1].at if index + 1 < len(typed) else float("inf")


def _sources(observed: Observed, shown: Iterable[int]) -> dict[int, Sent | None]:
    """Which request each shown text is a piece of; None: of none.  Of several, the newest one that was sent by then."""
    sent = observed.sent
    requests = [_Texts(one.prefix, one.answer) for one in sent]
    sources: dict[int, Sent | None] = {}
    n_sent = 0
    for index in shown:
        reply = observed.replied[index]
        while n_sent < len(sent) and sent[n_sent].at <= _at(reply):
            n_sent += 1
        screen = _Texts(observed.typed[index].prefix, reply.text)
        sources[index] = next((sent[one] for one in range(n_sent - 1, -1, -1) if _says(requests[one], screen)), None)
    return sources


class _Texts:
    """Text before a cursor and text to follow it, without white space: it may have been indented anew."""

    def __init__(self, before: str, text: str) -> None:
        self.before = _SPACE.sub("", before)
        self.text = _SPACE.sub("", text)


def _says(request: _Texts, screen: _Texts) -> bool:
    """Whether what is on screen is left of the request's answer where the text before the cursor has come to."""
    at = request.text.find(screen.text)
    while at >= 0:
        said = (request.before + request.text[:at])[-_BEFORE_CHARACTERS - at :]
        if screen.before.endswith(said) or said.endswith(screen.before):
            return True
        at = request.text.find(screen.text, at + 1)
    return False


def _typed_next(text: str, then: str) -> bool:
    first = text[:_FIRST_CHARACTERS]
    return then.startswith(first) or first.startswith(then)


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _quantile(ordered: Sequence[float], share: float) -> float | None:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else None
