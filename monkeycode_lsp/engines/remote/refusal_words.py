"""The words by which servers say what they do not like.  Pure.

A word of ours only counts where a refusal is about it: `stop` and `priority` are ordinary words, and a refusal may repeat
the whole request with the user's code in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

OVERFLOW = re.compile(
    r"context[ _-]?(?:length|size|window)|maximum (?:model|input|prompt|sequence|allowed) length|max_(?:model|seq|input)_len|"
    r"max_num_tokens|(?:input|prompt)\b.{0,40}\b(?:too long|too large)|exceed_context_size|"
    r"reduce (?:the )?(?:length of (?:the )?)?(?:your )?(?:prompt|messages|input)\b|"
    r"(?:prompt|input|requested) tokens?\b[^.]{0,40}\bexceed|inputs?`? tokens \+",
    re.IGNORECASE | re.DOTALL,
)
_LIMITS = (
    re.compile(r'"n_ctx"\s*:\s*(\d+)'),
    re.compile(r"(\d[\d,]{0,14})(?: tokens)? (?:maximum )?context (?:length|size|window)", re.IGNORECASE),
    re.compile(
        r"(?:context[ _]?(?:length|size|window)|maximum (?:model|input|prompt|sequence|allowed) length|max_\w+_(?:len|tokens))"
        r"[^\d\"{}]{0,40}?(\d[\d,]{0,14})",
        re.IGNORECASE,
    ),
    re.compile(r"(?:limit|maximum|at most|only|<=)[^\d\"{}]{0,40}?(\d[\d,]{0,14})", re.IGNORECASE),
)
_SMALLEST_WINDOW = 64
"""A smaller number beside such words is something else."""

MAY_MEAN_MODEL = frozenset({400, 404, 422})
NO_SUCH_MODEL = re.compile(
    r"\bmodel\b(?:(?!\. )[^\n]){0,160}?\b(?:not exist|not found|not available|not served|unknown)\b|"
    r"\b(?:invalid|unknown|unsupported|no such|not find) (?:the )?model\b|\bmodel_not_found\b",
    re.IGNORECASE,
)
WANTS_MODEL = re.compile(
    r"\b(?:provide|missing|requires?|specify)\b[^.\n]{0,30}\bmodel\b|\bmodel\b['\"`]*\W+(?:is )?(?:required|missing)\b|"
    r"\bmissing\b[^.\n]{0,20}loc\W{1,6}body\W{1,6}model\b",
    re.IGNORECASE,
)
UNPAID = re.compile(r"insufficient[ _](?:quota|balance|funds|credit)|exceeded your current quota|billing", re.IGNORECASE)
WANTS_TLS = re.compile(r"plain HTTP request was sent to HTTPS|HTTP request to an HTTPS server", re.IGNORECASE)

_MAY_NAME_A_FIELD = frozenset({400, 422, 500, 501, 503})
_NOT = r"(?:not|n't|no longer|un|dis)[ -]?(?:yet |currently )?(?:support|allow|permit|recogni|expect|known|enabled?|abled|implement|accept)"
_ADVERBS = r"(?:currently |yet |also )*"
_NOUN = r"(?:argument|parameter|param|field|key|keyword|property|properties|option|value|input)s?"
_BAD = r"(?:unsupported|unknown|unrecogni[sz]ed|unexpected|invalid|extra|additional|unpermitted|forbidden)"
_BETWEEN = rf"(?:\W|{_NOUN}|supplied|named?|received|found|provided|body|is|are|was|not (?:allowed|permitted|supported|recognized))*"
_REFUSED = (
    # The framework's own list: where, in JSON or in Python's notation.
    r"\bloc\b['\"]?\s*:\s*[\[(][^\])]{{0,80}}?['\"]{field}['\"]\s*,?\s*[\])]",
    # What OpenAI and its kin call it.
    r"\"param\"\s*:\s*\"{field}\"",
    # `priority` is disabled; 'top_p' is not supported; Priority scheduling is not enabled.
    rf"\b{{field}}\b['\"`\]]*(?:(?:,| and) \w+)*\s*(?:sampling )?(?:{_NOUN}|scheduling)?\s*(?:is|are|was|were|:|=|-)?\s*{_ADVERBS}(?:{_NOT}|forbidden|no longer)",
    # Unknown argument: x.  Extra inputs are not permitted, field: 'x'.
    rf"\b{_BAD}\s+(?:\w+\s+)?{_NOUN}\b{_BETWEEN}\b{{field}}\b",
    # The model does not support (the parameter) x.
    rf"\b(?:not|n't|cannot)\s+(?:support|allow|accept|permit|take)\w*\s+(?:the |a |an )?(?:{_NOUN}\s+)?['\"`]?{{field}}\b",
)


def window(text: str) -> int | None:
    """How many tokens the model's window has, if the text says it."""
    return next((n for pattern in _LIMITS for n in map(_number, pattern.findall(text)) if n >= _SMALLEST_WINDOW), None)


def refused_fields(status: int, body: bytes, fields: Iterable[str]) -> frozenset[str]:
    """Those of `fields` that a refusal is about."""
    if status not in _MAY_NAME_A_FIELD:
        return frozenset()
    text = body.decode("utf-8", "replace")
    return frozenset(field for field in fields if _is_about(text, field))


def about_suffix(status: int, body: bytes) -> bool:
    """Whether a server refuses the `suffix` field itself, or to insert at all."""
    return bool(refused_fields(status, body, ("suffix", "insert")))


def about_model(status: int, body: bytes) -> bool:
    """Whether a server says that it has no such model."""
    return status in MAY_MEAN_MODEL and bool(NO_SUCH_MODEL.search(body.decode("utf-8", "replace")))


def _is_about(text: str, field: str) -> bool:
    named = re.escape(field).replace("_", "[_ ]")
    return any(re.search(pattern.format(field=named), text, re.IGNORECASE) for pattern in _REFUSED)


def _number(digits: str) -> int:
    return int(digits.replace(",", "")[:9])
