"""The words by which servers say what they do not like.  Pure.

A word of ours only counts where a refusal is about it: `stop` and `priority` are ordinary words.

The texts come from a stranger, so every repetition below is bounded: no text can make them slow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from monkeycode_lsp.engines.remote import facts
from monkeycode_lsp.engines.remote.refusal_text import said

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
        r"(?:context[ _]?(?:length|size|window)|maximum (?:model|input|prompt|sequence|allowed) length|max_\w{1,24}_(?:len|tokens))"
        r"[^\d\"{}]{0,40}?(\d[\d,]{0,14})",
        re.IGNORECASE,
    ),
    re.compile(r"(?:limit|maximum|at most|only|<=)[^\d\"{}]{0,40}?(\d[\d,]{0,14})", re.IGNORECASE),
)

MAY_MEAN_MODEL = frozenset({400, 404, 422})
NO_SUCH_MODEL = re.compile(
    r"\bmodel\b(?:(?!\. )[^\n]){0,160}?\b(?:not exist|not found|not available|not served|unknown)\b|"
    r"\b(?:invalid|unknown|unsupported|no such|not find) (?:the )?model\b|\bmodel_not_found\b",
    re.IGNORECASE,
)
WANTS_MODEL = re.compile(
    r"\b(?:provide|missing|requires?|specify)\b[^.\n]{0,30}\bmodel\b|\bmodel\b\W{1,8}(?:is )?(?:required|missing)\b|"
    r"\bmissing\b[^.\n]{0,20}loc\W{1,6}body\W{1,6}model\b",
    re.IGNORECASE,
)
UNPAID = re.compile(r"insufficient[ _](?:quota|balance|funds|credit)|exceeded your current quota|billing", re.IGNORECASE)
WANTS_TLS = re.compile(r"plain HTTP request was sent to HTTPS|HTTP request to an HTTPS server", re.IGNORECASE)

_MAY_NAME_A_FIELD = frozenset({400, 422, 501})
"""Not those that pass: a server in trouble says anything."""
_NOT = r"(?:not|n't|no longer|un|dis)[ -]?(?:yet |currently )?(?:support|allow|permit|recogni|expect|known|enabled?|abled|implement|accept)"
_REFUSES = rf"(?:{_NOT}|forbidden|no longer)"
_IS = r"(?:is|are|was|were|:|=|-)?"
_ADVERBS = r"(?:currently |yet |also ){0,3}"
_NOUN = r"(?:argument|parameter|param|field|key|keyword|property|properties|option|value|input)s?"
_BAD = r"(?:unsupported|unknown|unrecogni[sz]ed|unexpected|invalid|extra|additional|unpermitted|forbidden)"
_BETWEEN = rf"(?:\W|{_NOUN}|supplied|named?|received|found|provided|body|is|are|was|not (?:allowed|permitted|supported|recognized)){{0,40}}"
_GAP = r"\s{0,4}"
_SPACE = r"\s{1,4}"
_REFUSED = (
    # The framework's own list: where, in JSON or in Python's notation.
    rf"\bloc\b['\"]?{_GAP}:{_GAP}[\[(][^\])]{{0,80}}?['\"]FIELD['\"]{_GAP},?{_GAP}[\])]",
    # What OpenAI and its kin call it.
    rf"\"param\"{_GAP}:{_GAP}\"FIELD\"",
    # `priority` is disabled; 'top_p' is not supported; Priority scheduling is not enabled.
    rf"\bFIELD\b['\"`\]\\]{{0,4}}(?:(?:,| and) \w{{1,40}}){{0,4}}{_GAP}(?:sampling )?(?:{_NOUN}|scheduling)?{_GAP}{_IS}{_GAP}{_ADVERBS}{_REFUSES}",
    # Unknown argument: x.  Extra inputs are not permitted, field: 'x'.
    rf"\b{_BAD}{_SPACE}(?:\w{{1,40}}{_SPACE})?{_NOUN}\b{_BETWEEN}\bFIELD\b",
    # The model does not support (the parameter) x.
    rf"\b(?:not|n't|cannot){_SPACE}(?:support|allow|accept|permit|take)\w{{0,8}}{_SPACE}(?:the |a |an )?(?:{_NOUN}{_SPACE})?['\"`\\]{{0,3}}FIELD\b",
)


def window(text: str) -> int | None:
    """How many tokens the model's window has, if the text says it."""
    told = (found[1].replace(",", "") for pattern in _LIMITS for found in pattern.finditer(text))
    return next((tokens for tokens in map(facts.window, told) if tokens is not None), None)


def refused_fields(status: int, body: bytes, fields: Iterable[str], *, sent: Sequence[str] = ()) -> frozenset[str]:
    """Those of `fields` that a refusal is about.  `sent`: see `refusal_text.said`."""
    if status not in _MAY_NAME_A_FIELD:
        return frozenset()
    text = said(body, sent)
    return frozenset(field for field in fields if _is_about(text, field))


def about_suffix(status: int, body: bytes, *, sent: Sequence[str] = ()) -> bool:
    """Whether a server refuses the `suffix` field itself, or to insert at all."""
    return bool(refused_fields(status, body, ("suffix", "insert"), sent=sent))


def about_model(status: int, body: bytes, *, sent: Sequence[str] = ()) -> bool:
    """Whether a server says that it has no such model."""
    return status in MAY_MEAN_MODEL and bool(NO_SUCH_MODEL.search(said(body, sent)))


def _is_about(text: str, field: str) -> bool:
    named = re.escape(field).replace("_", "[_ ]")
    return any(re.search(pattern.replace("FIELD", named), text, re.IGNORECASE) for pattern in _REFUSED)
