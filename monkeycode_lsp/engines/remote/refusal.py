"""What a server's refusal means, in the user's words.  Pure.

A server's own text is read but never repeated: it may hold the user's code or his key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from monkeycode_lsp.errors import ContextOverflowError, EngineBusyError, EngineError, EngineRefusedError, EngineUnavailableError

_ENDPOINTS = "`remote.endpoints`"

_OVERFLOW = re.compile(
    r"context[ _-]?(?:length|size|window)|maximum (?:model|input|prompt|sequence) length|max_(?:model|seq|input)_len|"
    r"(?:input|prompt)\b.{0,40}\btoo long|exceed_context_size",
    re.IGNORECASE | re.DOTALL,
)
_LIMITS = (
    re.compile(r'"n_ctx"\s*:\s*(\d+)'),
    re.compile(
        r"(?:context[ _]?(?:length|size|window)|maximum (?:model|input|prompt|sequence) length|max_\w+_len)\D{0,40}?([\d,]*\d)",
        re.IGNORECASE,
    ),
    re.compile(r"(?:limit|maximum|at most|only)\D{0,40}?([\d,]*\d)", re.IGNORECASE),
)
_MAY_MEAN_OVERFLOW = frozenset({400, 413, 422, 500})
_SMALLEST_WINDOW = 64
"""A smaller number beside such words is something else."""


class Where(msgspec.Struct, frozen=True):
    """Of whom a message speaks."""

    base: str
    model: str = ""
    has_key: bool = False


def by_status(where: Where, status: int, body: bytes, *, path: str, retry_after: str = "") -> EngineError:
    """The error for an HTTP status that is not a success."""
    overflow = _overflow(where, body) if status in _MAY_MEAN_OVERFLOW else None
    if overflow is not None:
        return overflow
    match status:
        case 413:
            error: EngineError = ContextOverflowError(f"The prompt is too long for the server at {where.base}.")
        case 401 | 403:
            error = _unauthorised(where, status)
        case 404 | 405 | 501:
            error = _not_there(where, body, path)
        case 503:
            error = EngineBusyError(
                f"The server at {where.base} is still loading its model, or overloaded.", retry_after_s=_seconds(retry_after)
            )
        case 408 | 425 | 429:
            error = EngineBusyError(f"The server at {where.base} asks us to wait (HTTP {status}).", retry_after_s=_seconds(retry_after))
        case _:
            error = _otherwise(where, status)
    return error


def by_error_object(where: Where, error: bytes) -> EngineError:
    """The error for an error object (JSON) that came with status 200."""
    overflow = _overflow(where, error)
    if overflow:
        return overflow
    code = _code(error)
    if code in {401, 403}:
        return _unauthorised(where, code)
    if code in {429, 503}:
        return EngineBusyError(f"The server at {where.base} asks us to wait.")
    return EngineRefusedError(f"The server at {where.base} reported an error instead of a completion.", remedy="Its log tells more.")


def strange(where: Where, *, page: bool = False) -> EngineRefusedError:
    """The error for a success whose body is no completion."""
    what = "a web page" if page else "something else"
    return EngineRefusedError(
        f"The server at {where.base} answered with {what} instead of a completion.",
        remedy=f"Check `url` and `api` in {_ENDPOINTS}; a proxy or a login page may stand in between.",
    )


def overflowed_silently(where: Where) -> ContextOverflowError:
    """The error for an answer that is empty because the window was full."""
    return ContextOverflowError(f"The prompt fills the whole window of the model at {where.base}.")


def about_suffix(status: int, body: bytes) -> bool:
    """Whether a server refuses the `suffix` field itself."""
    return status in {400, 422, 501} and b"suffix" in body.lower()


def refused_fields(status: int, body: bytes, fields: Iterable[str]) -> frozenset[str]:
    """Those of `fields` that a refusal names as whole words."""
    if status not in {400, 422, 501}:
        return frozenset()
    named = {word.decode() for word in re.findall(rb"[a-z_]+", body.lower())}
    return frozenset(field for field in fields if field in named)


def _otherwise(where: Where, status: int) -> EngineError:
    if status in range(300, 400):
        return EngineRefusedError(
            f"The server at {where.base} sends us to another address (HTTP {status}).",
            remedy=f"Set the final address in `url` of {_ENDPOINTS}; redirects are not followed, since a key would go with them.",
        )
    if status in range(500, 600):
        return EngineUnavailableError(f"The server at {where.base} has a fault of its own (HTTP {status}).", remedy="Its log tells more.")
    return EngineRefusedError(f"The server at {where.base} refused the request (HTTP {status}).", remedy="Its log tells more.")


def _unauthorised(where: Where, status: int) -> EngineRefusedError:
    what = "refused the key" if where.has_key else "wants a key"
    return EngineRefusedError(f"The server at {where.base} {what} (HTTP {status}).", remedy=f"Set `apiKey` or `apiKeyEnv` in {_ENDPOINTS}.")


def _not_there(where: Where, body: bytes, path: str) -> EngineRefusedError:
    if where.model and b"model" in body.lower():
        return EngineRefusedError(
            f"The server at {where.base} has no model {where.model!r}.", remedy=f"Set `model` in {_ENDPOINTS} to one that it serves."
        )
    return EngineRefusedError(
        f"The server at {where.base} has no {path}: it does not offer this kind of completion.",
        remedy=f"Check `url` and `api` in {_ENDPOINTS}.",
    )


def _overflow(where: Where, body: bytes) -> ContextOverflowError | None:
    text = body.decode("utf-8", "replace")
    if not _OVERFLOW.search(text):
        return None
    limit = next((n for pattern in _LIMITS for n in map(_number, pattern.findall(text)) if n >= _SMALLEST_WINDOW), None)
    size = f" of {limit} tokens" if limit else ""
    return ContextOverflowError(f"The prompt is too long for the window{size} of the model at {where.base}.", limit_tokens=limit)


def _number(digits: str) -> int:
    return int(digits.replace(",", "")[:9])


def _code(error: bytes) -> int:
    try:
        value = msgspec.json.decode(error)
    except msgspec.DecodeError:
        return 0
    code = value.get("code") if isinstance(value, dict) else None
    return code if isinstance(code, int) else 0


def _seconds(retry_after: str) -> float | None:
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        return None  # absent, or a date, which needs a clock that agrees with the server's
