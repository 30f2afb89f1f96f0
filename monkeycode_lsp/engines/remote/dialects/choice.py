"""Which of a server's models is asked where the user names none.  Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from monkeycode_lsp import prompt

T = TypeVar("T")

_WRITES_NO_TEXT = re.compile(
    r"embed|rerank|minilm|whisper|moderation|dall-e|stable-diffusion|(?<![a-z0-9])(?:bge|gte|e5|tts|clip)(?![a-z0-9])"
)
_MOST = 256
"""So many are looked at."""


def best(models: Sequence[T], names: Callable[[T], Iterable[str]]) -> T | None:
    """The first of a family that we know, else the first that writes text, else the first.

    `names`: all that a model is known by.
    """
    first = models[:_MOST]
    writers = [model for model in first if writes(names(model))]
    known = (model for model in writers if any(prompt.by_name(name) for name in names(model) if name))
    return next(known, next(iter(writers or first), None))


def writes(names: Iterable[str]) -> bool:
    """Whether a model may be one that writes text, by all of its names."""
    return not any(_WRITES_NO_TEXT.search(name.lower()) for name in names)
