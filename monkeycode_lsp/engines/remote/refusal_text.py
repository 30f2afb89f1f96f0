"""What of a refusal is the server's own word.  Pure.

Refusals come with what we sent: whole requests in a field of their own, or lines of it inside the message.  A user's code
speaks of anything, and must not be taken for what the server says.  What is looked at is bounded, so that reading is too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from monkeycode_lsp.engines.remote import facts

_END = 8192
"""Characters of each end of a text that are looked at."""
_MESSAGES = frozenset(
    {"error", "errors", "message", "msg", "detail", "details", "reason", "title", "description", "error_description", "inner", "cause"}
)
"""Fields that hold a message, or an object that holds one."""
_MARKS = frozenset({"loc", "param", "code", "type", "status", "n_ctx"})
"""Fields that say what a message is about."""
_LONGEST_MARK = 128
_MOST_ENTRIES = 32
_DEEPEST = 6

_WORD = re.compile(r"\w+")
_ESCAPED_SPACE = re.compile(r"(?<!\\)\\{1,8}[nrt]")
_RUN = 6
"""So many words in a row that we sent are ours.  Fewer may be by chance, such as `is not supported`, unless they are a whole line."""
_SHORTEST_LINE = 3


def said(body: bytes, sent: Sequence[str] = ()) -> str:
    """The server's own words in a refusal.  `sent`: the texts that our request held.

    JSON stays JSON, with nothing but messages and what they are about.
    """
    whole = facts.read(body, msgspec.Raw)
    text = body[: 4 * _END] + body[-4 * _END :] if len(body) > 8 * _END else body
    words = text.decode("utf-8", "replace") if whole is None else msgspec.json.encode(_own(bytes(whole))).decode()
    if len(words) > 2 * _END:
        words = f"{words[:_END]} {words[-_END:]}"
    return _without(words, sent) if sent else words


def _own(value: bytes, depth: int = 0) -> object:
    """What is the server's own of one value, without what has a name that we do not know."""
    text = facts.read(value, str)
    if text is not None:
        return text
    if depth >= _DEEPEST:
        return None
    listed = facts.read(value, list[msgspec.Raw])
    if listed is not None:
        return [_own(bytes(entry), depth + 1) for entry in listed[:_MOST_ENTRIES]]
    fields = facts.read(value, dict[str, msgspec.Raw]) or {}
    return {key: told for key, raw in fields.items() if (told := _field(key.lower(), bytes(raw), depth)) is not None}


def _field(key: str, value: bytes, depth: int) -> object:
    if key in _MESSAGES:
        return _own(value, depth + 1)
    if key in _MARKS and len(value) <= _LONGEST_MARK:
        return facts.read(value, msgspec.Raw)
    return None


def _without(text: str, sent: Sequence[str]) -> str:
    """The text without the stretches that we sent, however they were quoted."""
    words = list(_WORD.finditer(_spaced(text)))
    spoken = [word[0] for word in words]
    ours = _runs(sent)
    kept: list[str] = []
    end = 0
    for first, last in _found(spoken, ours):
        kept.append(text[end : words[first].start()])
        end = words[last].end()
    return " ".join((*kept, text[end:])) if kept else text


def _found(spoken: list[str], ours: frozenset[tuple[str, ...]]) -> Iterator[tuple[int, int]]:
    """First and last word of each stretch that is ours, in order and apart."""
    first = last = -1
    for here in range(len(spoken)):
        n_words = next(
            (n for n in range(_RUN, _SHORTEST_LINE - 1, -1) if here + n <= len(spoken) and tuple(spoken[here : here + n]) in ours), 0
        )
        if not n_words:
            continue
        if here > last + 1 and last >= 0:
            yield first, last
            first = here
        elif last < 0:
            first = here
        last = max(last, here + n_words - 1)
    if last >= 0:
        yield first, last


def _runs(sent: Sequence[str]) -> frozenset[tuple[str, ...]]:
    """All runs of words, and all short lines as a whole."""
    runs: set[tuple[str, ...]] = set()
    for text in map(_spaced, sent):
        words = _WORD.findall(text)
        runs.update(tuple(words[here : here + _RUN]) for here in range(len(words) - _RUN + 1))
        lines = (tuple(_WORD.findall(line)) for line in text.splitlines())
        runs.update(line for line in lines if _SHORTEST_LINE <= len(line) < _RUN)
    return frozenset(runs)


def _spaced(text: str) -> str:
    """Line breaks that are written as escapes are spaces, and as long as before."""
    return _ESCAPED_SPACE.sub(lambda escape: " " * len(escape[0]), text)
