"""The truth of a replay: what the author typed next at each key's cursor (pure).

It is what following keys insert at the cursor, one behind the other, up to the first deletion, jump or edit of
several places, up to the end of the line that it writes on (a line end that comes first is part of it), and no
more than `MOST_CHARACTERS`.
"""

from __future__ import annotations

from monkeycode_lsp.bench.replay.gap import GapText
from monkeycode_lsp.bench.replay.observed import Typed
from monkeycode_lsp.bench.replay.trace import Key, Trace

MOST_CHARACTERS = 40
PREFIX_CHARACTERS = 400
SUFFIX_CHARACTERS = 200


def follow(trace: Trace) -> list[Typed]:
    """One entry for each key: the text around the cursor after it, and what the author typed there next."""
    text = GapText(trace.start)
    typed = []
    for key, then in zip(trace.keys, _nexts(trace.keys), strict=True):
        for patch in key.patches:
            text.apply(patch)
        typed.append(Typed(key.at_s, text.before(PREFIX_CHARACTERS), text.after(SUFFIX_CHARACTERS), then))
    return typed


def _nexts(keys: tuple[Key, ...]) -> list[str]:
    """From the last key to the first: what comes after a key is the next key's text and what comes after that."""
    ahead, nexts = "", [""]
    for key, following in zip(keys[-2::-1], keys[:0:-1], strict=True):
        ahead = (_inserted_at(key.cursor, following) + ahead)[: 2 * MOST_CHARACTERS] if _continues(key, following) else ""
        nexts.append(_one_line(ahead))
    nexts.reverse()
    return nexts


def _continues(key: Key, following: Key) -> bool:
    return bool(_inserted_at(key.cursor, following))


def _inserted_at(cursor: int, key: Key) -> str:
    """What the key puts in at the cursor, if it does nothing else."""
    first = key.patches[0]
    return first.inserted if len(key.patches) == 1 and first.position == cursor and not first.deleted else ""


def _one_line(text: str) -> str:
    written = len(text) - len(text.lstrip("\n"))
    end = text.find("\n", written)
    return text[:MOST_CHARACTERS] if end < 0 else text[: min(end, MOST_CHARACTERS)]
