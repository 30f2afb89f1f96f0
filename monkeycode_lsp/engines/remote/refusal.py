"""What a server's refusal means, in the user's words.  Pure, but that a date in `Retry-After` is held against the clock.

A server's own text is read but never repeated: it may hold the user's code or his key.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from monkeycode_lsp.domain import Prompt
from monkeycode_lsp.engines.remote import facts
from monkeycode_lsp.engines.remote import refusal_words as words
from monkeycode_lsp.engines.remote.refusal_text import said
from monkeycode_lsp.engines.remote.refusal_words import about_model, about_suffix, refused_fields
from monkeycode_lsp.errors import (
    ContextOverflowError,
    EngineBusyError,
    EngineError,
    EngineFaultError,
    EngineRefusedError,
    EngineUnavailableError,
    StaysHereError,
    StreamBrokenError,
)

__all__ = ["Where", "about_model", "about_suffix", "by_error_object", "by_status", "overflowed_silently", "refused_fields", "strange"]

_ENDPOINTS = "`remote.endpoints`"
_LOG = "Its log tells more."
_KEY = f"Set `apiKey` or `apiKeyEnv` in {_ENDPOINTS}."

_MAY_MEAN_OVERFLOW = frozenset({400, 413, 422, 500})
_IN_TROUBLE = range(500, 600)
"""What a server says in such a state is not kept."""
_SAYS_ALL = frozenset({401, 402, 403, 429, 503})
"""Codes of an error object that mean the same as that status."""
_LONGEST_REST_S = 3600.0
"""A server that names a later time has a clock that does not agree with ours, or means something else."""


class Where(msgspec.Struct, frozen=True):
    """Of whom a message speaks."""

    base: str
    model: str = ""
    has_key: bool = False
    key_env: str = ""
    """The variable that should hold a key."""


def by_status(where: Where, status: int, body: bytes, *, path: str, retry_after: str = "", sent: Sequence[str] = ()) -> EngineError:
    """The error for an HTTP status that is not a success.  `sent`: texts of the request, which the server may repeat."""
    text = said(body, sent)
    return (
        (_overflow(where, text, status) if status in _MAY_MEAN_OVERFLOW else None)
        or (_about_model(where, text) if status in words.MAY_MEAN_MODEL else None)
        or _by_code(where, status, text, path=path, retry_after=retry_after)
    )


def by_error_object(where: Where, error: bytes, *, sent: Sequence[str] = ()) -> EngineError:
    """The error for an error object (JSON) that came with status 200.  `sent`: as for `by_status`."""
    text = said(error, sent)
    code = _code(error)
    if code in _SAYS_ALL:
        return _by_code(where, code, text, path="", retry_after="")
    told = _overflow(where, text, code) or _about_model(where, text)
    if told:
        return told
    if code in _IN_TROUBLE:
        return EngineFaultError(f"The server at {where.base} failed in the middle of its answer.", remedy=_LOG)
    return EngineRefusedError(f"The server at {where.base} reported an error instead of a completion.", remedy=_LOG)


def strange(where: Where, *, page: bool = False) -> EngineRefusedError:
    """The error for a success whose body is no completion."""
    what = "a web page" if page else "something else"
    return EngineRefusedError(
        f"The server at {where.base} answered with {what} instead of a completion.",
        remedy=f"Check `url` and `api` in {_ENDPOINTS}; a proxy or a login page may stand in between.",
    )


def too_late(where: Where, limit_s: float) -> EngineUnavailableError:
    """The error for an answer that does not begin."""
    return EngineUnavailableError(
        f"The server at {where.base} did not begin to answer within {limit_s:g} seconds.",
        remedy="If it is only slow, raise `remote.timeoutMs`.",
    )


def stalled(where: Where, limit_s: float) -> StreamBrokenError:
    """The error for an answer that does not go on."""
    return StreamBrokenError(
        f"The server at {where.base} said nothing more for {limit_s:g} seconds in the middle of an answer.",
        remedy="If it is only slow, raise `remote.stallMs`.",
    )


def overflowed_silently(where: Where) -> ContextOverflowError:
    """The error for an answer that is empty because the window was full."""
    return ContextOverflowError(f"The prompt fills the whole window of the model at {where.base}.")


def _by_code(where: Where, status: int, text: str, *, path: str, retry_after: str) -> EngineError:
    page = text.lstrip()[:1] == "<"
    match status:
        case 413:
            error: EngineError = ContextOverflowError(
                f"The prompt is too long for the server at {where.base}, or for a proxy before it (HTTP 413).",
                remedy="A proxy's limit is called `client_max_body_size` in nginx.",
            )
        case 401 | 403:
            error = _unauthorised(where, status, page=page)
        case 404 | 405 | 501:
            error = _not_there(where, path)
        case 407:
            error = EngineRefusedError(
                f"The proxy before {where.base} wants a name and a password (HTTP 407).",
                remedy="Put them into the proxy's address: http://name:password@proxy:3128.",
            )
        case 402 | 429 if status == 402 or words.UNPAID.search(text):  # noqa: PLR2004 - payment required
            error = _unpaid(where, status)
        case 408 | 425 | 429 | 503:
            error = _busy(where, status, retry_after)
        case 502 | 504:
            error = EngineUnavailableError(
                f"A proxy at {where.base} gets no answer from the server behind it (HTTP {status}).", remedy="Is that server running?"
            )
        case _:
            error = _otherwise(where, status, text, page=page)
    return error


def _busy(where: Where, status: int, retry_after: str) -> EngineBusyError:
    if status == 503:  # noqa: PLR2004 - service unavailable
        what = f"The server at {where.base} is still loading its model, or overloaded."
    else:
        what = f"The server at {where.base} asks us to wait (HTTP {status})."
    return EngineBusyError(what, retry_after_s=_seconds(retry_after))


def _otherwise(where: Where, status: int, text: str, *, page: bool) -> EngineError:
    if status in range(300, 400) and status != 304:  # noqa: PLR2004 - "not modified" names no other address
        return EngineRefusedError(
            f"The server at {where.base} sends us to another address (HTTP {status}).",
            remedy=f"Set the final address in `url` of {_ENDPOINTS}; redirects are not followed, since a key would go with them.",
        )
    if status >= 500:  # noqa: PLR2004 - where the server's own faults begin
        return EngineFaultError(f"The server at {where.base} has a fault of its own (HTTP {status}).", remedy=_LOG)
    if words.WANTS_TLS.search(text):
        return EngineRefusedError(f"The server at {where.base} speaks https only.", remedy=f"Write https:// in `url` of {_ENDPOINTS}.")
    if page:
        return EngineRefusedError(
            f"The server at {where.base} refused the request with a web page (HTTP {status}).",
            remedy=f"A proxy may stand in between; check `url` in {_ENDPOINTS}.",
        )
    return EngineRefusedError(f"The server at {where.base} refused the request (HTTP {status}).", remedy=_LOG)


def _unauthorised(where: Where, status: int, *, page: bool) -> EngineRefusedError:
    if not where.has_key and where.key_env:
        return EngineRefusedError(
            f"The server at {where.base} wants a key (HTTP {status}), and the variable {where.key_env}, named by `apiKeyEnv`, is not set.",
            remedy="Set it where your editor or this command is started.",
        )
    what = "refused the key" if where.has_key else "wants a key"
    in_between = " The answer is a web page: a proxy or a firewall may have given it." if page else ""
    return EngineRefusedError(f"The server at {where.base} {what} (HTTP {status}).{in_between}", remedy=_KEY)


def _unpaid(where: Where, status: int) -> EngineRefusedError:
    return EngineRefusedError(
        f"The account at {where.base} has nothing left to pay for completions with (HTTP {status}).",
        remedy="Top it up, or raise its limit, with whoever runs that server.",
    )


def _about_model(where: Where, text: str) -> EngineRefusedError | None:
    if where.model and words.NO_SUCH_MODEL.search(text):
        return EngineRefusedError(
            f"The server at {where.base} has no model {where.model!r}.", remedy=f"Set `model` in {_ENDPOINTS} to one that it serves."
        )
    if not where.model and words.WANTS_MODEL.search(text):
        return EngineRefusedError(f"The server at {where.base} wants the name of a model.", remedy=f"Set `model` in {_ENDPOINTS}.")
    return None


def _not_there(where: Where, path: str) -> EngineRefusedError:
    return EngineRefusedError(
        f"The server at {where.base} has no {path}: it does not offer this kind of completion.",
        remedy=f"Check `url` and `api` in {_ENDPOINTS}.",
    )


def _overflow(where: Where, text: str, status: int) -> ContextOverflowError | None:
    if not words.OVERFLOW.search(text):
        return None
    limit = None if status in _IN_TROUBLE else words.window(text)
    size = f" of {limit} tokens" if limit else ""
    return ContextOverflowError(f"The prompt is too long for the window{size} of the model at {where.base}.", limit_tokens=limit)


class _Coded(msgspec.Struct):
    code: Any = None


def _code(error: bytes) -> int:
    """What is no number is a word of the server's own."""
    coded = facts.read(error, _Coded)
    return (coded and facts.count(coded.code)) or 0


def _seconds(retry_after: str) -> float | None:
    """Seconds, or the date at which they are over; None: neither."""
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(retry_after).timestamp() - time.time()
        except (ValueError, OverflowError, OSError):  # a year that no clock knows
            return None
    return min(max(0.0, seconds), _LONGEST_REST_S) if math.isfinite(seconds) else None


def check_place(asked: Prompt, model: str) -> None:
    """Raises `StaysHereError` where a prompt must stay on this machine and the server's model is elsewhere."""
    if asked.stays_here and facts.is_passed_on(model):
        raise StaysHereError(f"the model {model} runs elsewhere")
