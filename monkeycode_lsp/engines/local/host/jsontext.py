"""Values as JSON that survives file names which are no text: they keep their odd bytes as lone surrogates.  Pure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)


def dump(value: msgspec.Struct) -> str:
    """One line of ASCII."""
    return json.dumps(msgspec.to_builtins(value, enc_hook=_plain))


def load(text: str | bytes, kind: type[T]) -> T:
    """What `dump` wrote.  Raises `ValueError`."""
    try:
        return msgspec.convert(json.loads(text), kind, dec_hook=lambda _kind, plain: Path(plain))
    except RecursionError as exc:
        raise ValueError("it is nested too deeply") from exc


def _plain(value: Any) -> str:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(f"a {type(value).__name__} has no JSON")
