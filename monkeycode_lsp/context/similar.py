"""Passages of other places that are about the same things as the text around the cursor (pure).

A document is read once for each version (`chunked`, off the hot path); a query then looks up the
rarest of its identifiers first and stops after a bounded number of look-ups, whatever is open.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from math import log

import msgspec

from monkeycode_lsp.context import words
from monkeycode_lsp.context.place import Place
from monkeycode_lsp.domain import Snippet, Window
from monkeycode_lsp.syntax.language_ids import family
from monkeycode_lsp.text import lf

STEP_LINES = 10
CHUNK_STEPS = 2
"""A chunk has so many steps: 20 lines, the next one begins 10 lines below.  Larger ones are found as well, but of the
budget's few hundred tokens there is room for one only, and half of that is about something else."""
MOST_LINES = 3_000
"""Of one document: those around the place that was visited last."""
LONGEST_LINE = 400
"""A chunk with a longer line is data, and is not quoted."""
MOST_DOCUMENTS = 40
BEFORE_LINES = 30
AFTER_LINES = 10
"""What a query is made of."""
_BUDGET = 12_000
"""Entries that one query looks at."""
_LEAST = 0.12
_LEAST_FOREIGN = 0.4
"""A chunk of another language must be much alike."""
_SIZE_MATTERS = 0.5


class Chunked(msgspec.Struct, frozen=True):
    """A document, cut into overlapping chunks that are found by their words."""

    uri: str
    version: int
    path: str
    """Relative, `/` separated."""
    language: str
    first: int
    """The document's line that `lines` begin with."""
    lines: tuple[str, ...]
    """Without line ends."""
    sizes: tuple[int, ...]
    """How many words each chunk has; 0: it is not quoted.  Chunk i begins at `lines[i * STEP_LINES]`."""
    chunks_with: dict[str, tuple[int, ...]]
    """By word."""


def chunked(uri: str, version: int, path: str, language: str, lines: Sequence[str], *, around: int = 0) -> Chunked:
    """Read a document; of a long one the lines around `around`.  Some milliseconds for 3,000 lines."""
    first = max(0, min(around - MOST_LINES // 2, len(lines) - MOST_LINES))
    # A longer line is cut just so far that it is still seen to be too long.
    taken = tuple(lf(line[: LONGEST_LINE + 3]).rstrip("\n") for line in lines[first : first + MOST_LINES])
    steps = [_words(taken[start : start + STEP_LINES]) for start in range(0, len(taken), STEP_LINES)]
    sizes: list[int] = []
    chunks_with: dict[str, list[int]] = {}
    for index in range(max(1, len(steps) - CHUNK_STEPS + 1)):
        parts = [step for step in steps[index : index + CHUNK_STEPS] if step is not None]
        is_whole = len(parts) == len(steps[index : index + CHUNK_STEPS])
        found = frozenset[str]().union(*parts) if is_whole else frozenset[str]()
        sizes.append(len(found))
        for word in found:
            chunks_with.setdefault(word, []).append(index)
    return Chunked(
        uri=uri,
        version=version,
        path=path,
        language=language,
        first=first,
        lines=taken,
        sizes=tuple(sizes),
        chunks_with={word: tuple(indices) for word, indices in chunks_with.items()},
    )


def _words(lines: Sequence[str]) -> frozenset[str] | None:
    if any(len(line) > LONGEST_LINE or "\0" in line for line in lines):
        return None
    return words.words("\n".join(lines))


def query(window: Window) -> frozenset[str]:
    """What the text around the cursor is about."""
    before = window.prefix[-words.LOOKED_AT :].split("\n")[-BEFORE_LINES:]
    after = window.suffix[: words.LOOKED_AT].split("\n")[:AFTER_LINES]
    return words.words("\n".join((*before, *after)))


def find(wanted: frozenset[str], documents: Iterable[Chunked], place: Place, *, most: int = 8) -> list[Snippet]:
    """The chunks most alike, best first; what the window shows is not among them, nor do two of them overlap."""
    candidates = list(documents)[:MOST_DOCUMENTS]
    weights = _weights(wanted, candidates)
    if not weights:
        return []
    whole, sums = _sums(weights, candidates)
    n_chunks = sum(len(document.sizes) for document in candidates)
    average = sum(sum(document.sizes) for document in candidates) / n_chunks
    scored: list[tuple[float, int, int]] = []
    for at, found in sums.items():
        document = candidates[at]
        is_foreign = family(document.language) != family(place.language)
        for index, total in found.items():
            score = total / whole / (1 - _SIZE_MATTERS + _SIZE_MATTERS * document.sizes[index] / average)
            if score >= (_LEAST_FOREIGN if is_foreign else _LEAST):
                scored.append((score * 0.5 if is_foreign else score, -at, -index))
    return _best(heapq.nlargest(4 * most, scored), candidates, place, most)


def _weights(wanted: frozenset[str], documents: Sequence[Chunked]) -> dict[str, float]:
    """By word, the rarest first: what it tells that a chunk has it."""
    n_chunks = sum(len(document.sizes) for document in documents)
    rarity: list[tuple[int, str]] = []
    for word in wanted:
        n_with = sum([len(document.chunks_with[word]) for document in documents if word in document.chunks_with])
        if n_with:
            rarity.append((n_with, word))
    return {word: log(1 + n_chunks / n_with) for n_with, word in sorted(rarity)}


def _sums(weights: dict[str, float], documents: Sequence[Chunked]) -> tuple[float, dict[int, dict[int, float]]]:
    """The weights of the words that were looked up; and by document and chunk, of those that it has."""
    sums: dict[int, dict[int, float]] = {}
    whole, left = 0.0, _BUDGET
    for word, weight in weights.items():
        whole += weight
        for at, document in enumerate(documents):
            indices = document.chunks_with.get(word)
            if indices is None:
                continue
            of_document = sums.setdefault(at, {})
            for index in indices:
                of_document[index] = of_document.get(index, 0.0) + weight
            left -= len(indices)
        if left < 0:
            break
    return whole, sums


def _best(scored: Iterable[tuple[float, int, int]], documents: Sequence[Chunked], place: Place, most: int) -> list[Snippet]:
    taken: list[tuple[int, int]] = []
    best: list[Snippet] = []
    for score, at, index in ((score, -at, -index) for score, at, index in scored):
        document = documents[at]
        start = index * STEP_LINES
        lines = document.lines[start : start + CHUNK_STEPS * STEP_LINES]
        if place.shows(document.uri, document.first + start, document.first + start + len(lines)):
            continue
        if any(at == other and abs(index - near) < CHUNK_STEPS for other, near in taken):
            continue
        taken.append((at, index))
        best.append(Snippet(path=document.path, text="\n".join(lines).strip("\n"), kind="similar", score=min(1.0, score)))
        if len(best) == most:
            break
    return best
