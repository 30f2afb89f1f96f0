"""Which snippets stand in the prompt, from ask to ask (pure).

Snippets stand before the window, so the engine reads the whole window anew whenever they change.  So what was
chosen stays, in its order; within one line nothing changes; a new line may bring a change if it is worth it, and no
more than about one for each ten lines.

Read `choose` first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from math import sqrt

import msgspec

from monkeycode_lsp.context import snippets, words
from monkeycode_lsp.context.place import Place
from monkeycode_lsp.context.snippets import Ranked, Seen
from monkeycode_lsp.domain import Snippet, Window

FAR_LINES = 40
"""A cursor that moved farther is at another place: what is chosen there need not agree with what was."""
LINES_PER_CHANGE = 10
MARGIN = 0.25
"""So much more must other snippets be worth, that the window is read anew for them: about a third of a good definition."""
MARGIN_FAR = 0.1
"""At another place the engine reads the window anew anyway, but the snippets it knows already."""
_FADES = 0.97
"""For each line: what a snippet is still worth that is no candidate any more."""
_SHOWN = 0.75
"""A chosen snippet of which the window has a larger share must go: the model would repeat it."""
_ORDER = {"own": 0, "definition": 1, "similar": 2, "edit": 3}
"""The most stable ones first: a change leaves what stands before it as it was."""


class Chosen(msgspec.Struct, frozen=True):
    """One snippet of the prompt."""

    snippet: Snippet
    """As it is quoted."""
    source: Snippet
    """The candidate that it was cut from."""
    worth: float
    """Less if much of it was cut off."""


class Selection(msgspec.Struct, frozen=True):
    """What was chosen, and what the next choice needs to know."""

    uri: str = ""
    line: int = 0
    budget: float = 0.0
    chosen: tuple[Chosen, ...] = ()
    rested_lines: int = 0
    """Lines that the cursor moved since the last change; more than `LINES_PER_CHANGE` are not counted."""

    @property
    def snippets(self) -> tuple[Snippet, ...]:
        """In the order of the prompt."""
        return tuple(one.snippet for one in self.chosen)


NONE = Selection()
"""Of a document that nothing was chosen for yet."""


def choose(
    previous: Selection,
    candidates: Callable[[], Iterable[Snippet]],
    window: Window,
    place: Place,
    budget: float,
    *,
    changed: frozenset[str] = frozenset(),
    explicit: bool = False,
) -> Selection:
    """The snippets for the prompt at `place`, in `budget` tokens.

    `candidates` is called only if they matter.  `changed`: paths of files that were changed since the choice before
    (of this one: outside the window); what is quoted of them stays only if a candidate still says it.  `explicit`: the user asked by key, so that
    something better is worth a wait in the middle of a line as well.
    """
    if budget <= 0:
        return Selection(place.uri, place.line, budget)
    is_new = previous.uri != place.uri or previous.budget != budget
    moved = abs(place.line - previous.line)
    is_touched = any(one.snippet.path in changed for one in previous.chosen)
    if not is_new and moved == 0 and not is_touched and not explicit:
        return previous
    seen = snippets.seen(window)
    ranked = snippets.ranked(candidates(), seen)
    if is_new:
        fresh = _fresh(ranked, budget, seen)
        return Selection(place.uri, place.line, budget, fresh, LINES_PER_CHANGE // 2 if fresh else LINES_PER_CHANGE)
    is_far = moved > FAR_LINES
    rested = min(LINES_PER_CHANGE, previous.rested_lines + moved)
    kept = tuple(_kept(previous.chosen, ranked, seen, changed, moved))
    stays = tuple(one.snippet for one in kept) == previous.snippets
    if moved == 0 and stays and not explicit:
        return previous
    if rested == LINES_PER_CHANGE or explicit or not stays:
        better = _better(kept, ranked, budget, seen)
        if not stays or _worth(better) > _worth(kept) + (MARGIN_FAR if is_far else MARGIN):
            return Selection(place.uri, place.line, budget, better)
    return Selection(place.uri, place.line, budget, kept, rested)


def _kept(chosen: Iterable[Chosen], ranked: Sequence[Ranked], seen: Seen, changed: frozenset[str], moved: int) -> Iterable[Chosen]:
    """What is still true and not in the window, in its order, with what it is worth now."""
    worths = {(one.snippet.path, one.snippet.text): one.worth for one in ranked}
    for one in chosen:
        now = worths.get((one.source.path, one.source.text))
        # The document's own heads are known for certain: what is none of them now is not true any more.
        if now is None and (one.snippet.path in changed or one.snippet.kind == "own"):
            continue
        if words.contained(words.lines(one.snippet.text), seen.lines) > _SHOWN:
            continue
        worth = one.worth * _FADES**moved if now is None else now * _share(one.snippet, one.source)
        yield msgspec.structs.replace(one, worth=worth)


def _better(kept: tuple[Chosen, ...], ranked: Sequence[Ranked], budget: float, seen: Seen) -> tuple[Chosen, ...]:
    """The best that there is now: `kept` with something behind it, or what would be chosen if nothing were kept."""
    grown = _grown(kept, ranked, budget, seen)
    fresh = _fresh(ranked, budget, seen)
    if _worth(fresh) <= _worth(grown) + MARGIN_FAR:
        return grown
    stay = [one for one in kept if any(one.snippet == other.snippet for other in fresh)]
    return (*stay, *(one for one in fresh if all(one.snippet != other.snippet for other in stay)))


def _fresh(ranked: Iterable[Ranked], budget: float, seen: Seen) -> tuple[Chosen, ...]:
    """The best that fits, the most stable kinds first."""
    chosen = _grown((), ranked, budget, seen)
    return tuple(sorted(chosen, key=lambda one: (_ORDER[one.snippet.kind], -one.worth)))


def _grown(kept: tuple[Chosen, ...], ranked: Iterable[Ranked], budget: float, seen: Seen) -> tuple[Chosen, ...]:
    """`kept`, and behind it what else fits and is not said by it."""
    chosen = list(kept)
    left = budget - sum(snippets.cost(one.snippet) for one in kept)
    lines = [words.lines(one.source.text) for one in kept]
    said: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
    for one in kept:
        said[one.snippet.path] |= words.lines(one.snippet.text)
    for candidate in ranked:
        if left < snippets.LEAST_TOKENS:
            break
        source = candidate.snippet
        its_lines = words.lines(source.text)
        if any(words.contained(its_lines, other) > snippets.ALIKE for other in lines):
            continue
        unsaid = snippets.unsaid(source, said[source.path])
        snippet = snippets.fitted(unsaid, min(left, budget * snippets.LARGEST_SHARE[source.kind]), seen) if unsaid is not None else None
        if snippet is None:
            continue
        said[source.path] |= words.lines(snippet.text)
        chosen.append(Chosen(snippet, source, candidate.worth * _share(snippet, source)))
        lines.append(its_lines)
        left -= snippets.cost(snippet)
    return tuple(chosen)


def _share(snippet: Snippet, source: Snippet) -> float:
    """What is left of the worth after a cut: the first half of a text says more than the second."""
    return sqrt(min(1.0, snippets.cost(snippet) / snippets.cost(source)))


def _worth(chosen: Iterable[Chosen]) -> float:
    return sum(one.worth for one in chosen)
