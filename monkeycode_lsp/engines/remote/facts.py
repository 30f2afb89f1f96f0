"""What servers say, read with caution: a value that can be worked with, or none.  Pure.

A server may be broken, of another kind than it seems, or hostile.  Nothing here raises, whatever the bytes are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

SMALLEST_WINDOW = 256
"""Tokens; no model that completes code has less, so that a smaller number is something else."""
LARGEST_WINDOW = 10_000_000
MOST_SLOTS = 1024

_UNREADABLE = (ValueError, OverflowError, RecursionError)
"""What decoding raises; the last one if brackets are nested thousands deep."""
_LONGEST_NAME = 512
_LONGEST_NUMBER = 24
_MOST_TOKENS = 1_000_000_000
_MOST_TRIES = 16
"""Closing brackets at the end of what was cut off; one entry holds a few."""


def read(data: bytes | None, kind: type[T]) -> T | None:
    """JSON as `kind`; None: it is something else."""
    try:
        return msgspec.json.decode(data, type=kind) if data else None
    except _UNREADABLE:
        return None


def each(listed: Iterable[msgspec.Raw], kind: type[T]) -> list[T]:
    """Those entries of a list that can be read."""
    found = (read(bytes(entry), kind) for entry in listed)
    return [entry for entry in found if entry is not None]


def entries(body: bytes | None, key: str, kind: type[T]) -> list[T] | None:
    """Those entries of the list at `key` that can be read, even if the end of the body is missing; None: there is no such list."""
    if not body:
        return None
    fields = read(body, dict[str, msgspec.Raw])
    listed = (_up_to_the_cut(body) if fields is None else fields).get(key)
    if listed is None:
        return None
    if bytes(listed) == b"null":  # how Go writes a list without entries
        return []
    found = read(bytes(listed), list[msgspec.Raw])
    return None if found is None else each(found, kind)


def _up_to_the_cut(body: bytes) -> dict[str, msgspec.Raw]:
    """A list that was too long to be kept as a whole, up to its last entry that is whole."""
    end = len(body) if body.lstrip()[:1] == b"{" else 0
    for _ in range(_MOST_TRIES):
        end = body.rfind(b"}", 0, end)
        if end < 0:
            break
        fields = read(body[: end + 1] + b"]}", dict[str, msgspec.Raw])
        if fields is not None:
            return fields
    return {}


def count(value: Any, *, most: int = _MOST_TOKENS) -> int | None:
    """A number that is not negative; some write it as text, or with a point."""
    if isinstance(value, str) and len(value) <= _LONGEST_NUMBER:
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= most else None  # "not a number" is not within


def window(value: Any) -> int | None:
    """How many tokens a model takes, if that is what it can be."""
    tokens = count(value, most=LARGEST_WINDOW)
    return tokens if tokens is not None and tokens >= SMALLEST_WINDOW else None


def name(value: Any) -> str:
    """A name of one line that can be shown and sent back; empty: it is none."""
    return value if isinstance(value, str) and len(value) <= _LONGEST_NAME and value.isprintable() else ""


def is_passed_on(model: str) -> bool:
    """Whether a server of this machine only hands the text on: Ollama has its maker's models under such names."""
    return model.lower().endswith(("-cloud", ":cloud"))
