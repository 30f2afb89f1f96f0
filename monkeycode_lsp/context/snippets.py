"""Which of the candidates are worth quoting, in which order of worth, and how much of each (pure).

Nothing is quoted twice, nor what the window says already: a model that sees a text twice says it a third time.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

import msgspec

from monkeycode_lsp.context import tokens, words
from monkeycode_lsp.domain import Snippet, Window

WEIGHTS = {"definition": 1.0, "own": 0.9, "edit": 0.6, "similar": 0.5}
"""What the best snippet of a kind is worth."""
ALIKE = 0.9
"""Two snippets with more in common are one."""
SHOWN = 0.5
"""A snippet of which the window shows a larger share is in it."""
LARGEST_SHARE = {"definition": 0.5, "own": 0.3, "edit": 0.3, "similar": 0.4}
"""Of the budget, for one snippet."""
LEAST_TOKENS = 8
_LEAST_TOKENS = {"definition": LEAST_TOKENS, "own": LEAST_TOKENS, "edit": 12, "similar": 48}
"""Less of a snippet is not worth its path."""
_LEAST_UNSAID = 0.3
"""A snippet of which others leave less is in them."""
_FRAME_TOKENS = 3
"""What stands around a snippet in a prompt, beside its path."""
MOST_CANDIDATES = 64
LONGEST = 8_000
"""Characters of a candidate; what comes later of a longer one is not quoted."""


class Ranked(msgspec.Struct, frozen=True):
    """A candidate, and what it is worth among those of all kinds."""

    snippet: Snippet
    worth: float


class Seen(msgspec.Struct, frozen=True):
    """The lines that the window shows, to compare many snippets with."""

    lines: frozenset[str]
    words: frozenset[str]


def seen(window: Window) -> Seen:
    """Of the parts nearest to the cursor, if it is very large."""
    shown = window.prefix[-words.LOOKED_AT :] + window.suffix[: words.LOOKED_AT]
    return Seen(words.telling(shown.split("\n")), words.words(window.prefix[-4_000:]))


def ranked(candidates: Iterable[Snippet], window: Seen) -> list[Ranked]:
    """The best first, without what is there twice or empty."""
    all_of_them = (Ranked(_bounded(snippet), worth(snippet)) for snippet in candidates)
    by_worth = heapq.nlargest(MOST_CANDIDATES, all_of_them, key=lambda one: one.worth)
    kept: list[Ranked] = []
    known: list[tuple[frozenset[str], frozenset[str]]] = []
    for candidate in by_worth:
        text = candidate.snippet.text
        lines, its_words = words.lines(text), words.words(text)
        if not lines or words.contained(lines, window.lines) > SHOWN:
            continue
        if any(_is_same(lines, its_words, *other) for other in known):
            continue
        known.append((lines, its_words))
        kept.append(candidate)
    return kept


def _bounded(snippet: Snippet) -> Snippet:
    if len(snippet.text) <= LONGEST:
        return snippet
    return msgspec.structs.replace(snippet, text=snippet.text[: max(0, snippet.text.rfind("\n", 0, LONGEST))])


def _is_same(lines: frozenset[str], its_words: frozenset[str], other_lines: frozenset[str], other_words: frozenset[str]) -> bool:
    """Whether a less worthy snippet says what another one says: nearly the same words, or lines that the other one has."""
    return words.contained(lines, other_lines) > ALIKE or words.likeness(its_words, other_words) > ALIKE


def unsaid(snippet: Snippet, said: frozenset[str]) -> Snippet | None:
    """What others of its file, which have the lines `said`, leave of it in one piece; None if that is too little.

    A single line that they have too may be another one that reads the same.
    """
    lines = snippet.text.split("\n")
    telling = [at for at, line in enumerate(lines) if words.telling([line])]
    shared = [lines[at].strip() in said for at in telling]
    twice = [is_shared and (any(shared[max(0, n - 1) : n]) or any(shared[n + 1 : n + 2])) for n, is_shared in enumerate(shared)]
    if not any(twice):
        return snippet
    runs, start = [], 0
    for n, is_twice in enumerate([*twice, True]):
        if is_twice:
            runs.append((n - start, start, n))
            start = n + 1
    length, first, stop = max(runs, key=lambda run: run[0])
    if length < max(1.0, _LEAST_UNSAID * len(telling)):
        return None
    begin = telling[first - 1] + 1 if first else 0
    end = telling[stop] if stop < len(telling) else len(lines)
    return msgspec.structs.replace(snippet, text="\n".join(lines[begin:end]).strip("\n"))


def worth(snippet: Snippet) -> float:
    """From 0 to 1, comparable among all kinds."""
    return WEIGHTS[snippet.kind] * min(1.0, max(0.0, snippet.score))


def cost(snippet: Snippet) -> float:
    """Tokens that it probably takes in a prompt."""
    return sum(map(_of_line, snippet.text.split("\n"))) + frame(snippet)


def frame(snippet: Snippet) -> float:
    """Tokens that it takes beside its text."""
    return tokens.estimate(snippet.path) + _FRAME_TOKENS


def _of_line(line: str) -> float:
    return tokens.estimate(line + "\n")


def fitted(snippet: Snippet, budget: float, window: Seen) -> Snippet | None:
    """The snippet, cut at line ends to what is most useful of it if it is too long; None if nothing useful fits.

    Of a definition that is its head; of the document's own imports and heads the end, where its own modules and the
    innermost function are; of a passage, the lines that say most of what the window is about.
    """
    budget -= frame(snippet)
    least = _LEAST_TOKENS[snippet.kind]
    lines = snippet.text.split("\n")
    costs = list(map(_of_line, lines)) if budget > 0 else []
    if costs and sum(costs) <= budget:
        return snippet
    if budget < least:
        return None
    if snippet.kind == "similar":
        start, stop = _best_run(lines, costs, budget, window)
    elif snippet.kind == "own":
        start, stop = len(lines) - _reach(costs[::-1], budget), len(lines)
    else:
        start, stop = 0, _reach(costs, budget)
    text = "\n".join(lines[start:stop]).strip("\n")
    if sum(costs[start:stop]) < least or words.contained(words.lines(text), window.lines) > SHOWN:
        return None
    return msgspec.structs.replace(snippet, text=text)


def _reach(costs: Sequence[float], budget: float) -> int:
    """How many of the first lines fit."""
    for at, cost_of_line in enumerate(costs):
        budget -= cost_of_line
        if budget < 0:
            return at
    return len(costs)


def _best_run(lines: Sequence[str], costs: Sequence[float], budget: float, window: Seen) -> tuple[int, int]:
    """The run of lines that fits and shares most with the window; it begins where a block begins, if there is a choice."""
    gains = [0 if line.strip() in window.lines else len(words.words(line) & window.words) for line in lines]
    best, best_gain = (0, 0), -1.0
    stop, spent, gain = 0, 0.0, 0
    for start in range(len(lines)):
        while stop < len(lines) and spent + costs[stop] <= budget:
            spent += costs[stop]
            gain += gains[stop]
            stop += 1
        begins_block = start == 0 or not lines[start - 1].strip()
        if lines[start].strip() and gain * (1.1 if begins_block else 1.0) > best_gain:
            best, best_gain = (start, stop), gain * (1.1 if begins_block else 1.0)
        if stop > start:
            spent -= costs[start]
            gain -= gains[start]
        else:  # a line that is too long by itself
            stop = start + 1
    return best
