"""Secrets inside a text that may be shown to a model: placeholders of the same length in their place, and the way back (pure).

Invariant: no column moves.  A placeholder begins with a part that stands nowhere in what is redacted, so whatever of it
comes back in an answer can be told from the user's own text.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from monkeycode_lsp.context import shapes
from monkeycode_lsp.context.spread import Span

_SIGN = "hidden_"
_SHORT_SIGN = "zq"
_N_TAG = 6
_LEAST = 4
"""A shorter piece has no placeholder that could not be a word of the user: it is made unreadable, and not restored."""
_FILLING = "_amber_birch_cedar_dune_elm_fjord_gorse_heath_iris_juniper_kelp_larch_moss_nettle_oak_pine_quartz_reed_sedge_thyme"
"""Words: they cost a model few tokens, and it copies them more surely than a row of one letter."""
_PAIRS = [f"{one}_{other}" for one, other in itertools.pairwise([*_FILLING.split("_")[1:], "amber"])]
"""Nobody's own words stand in this order."""
_STRAY = re.compile(rf"(?<![a-z])(?:{_SIGN}[a-z]{{1,8}}_)?({'|'.join(_PAIRS)})")
_STRAY_BEGUN = re.compile(
    rf"(?<![a-z])(?=[a-z])(?:{_SIGN}[a-z]{{0,8}}_?)?(?:{'|'.join(sorted({pair[:n] for pair in _PAIRS for n in range(1, len(pair))}))})?\Z"
)
_MOST_BEGUN = 40
_LOWER = re.compile("[a-z_]*")
_CONSONANTS, _VOWELS = "bdfghjklmnprstvw", "aeio"
_MOST_TRIES = 32
"""To find a sign for one secret; one without is made unreadable, and not restored."""
_MOST_SOUGHT = 64
"""Secrets that are looked for where nothing around says that they are one."""
_PLAIN = 8
"""The shortest of those."""


class Placeholder(msgspec.Struct, frozen=True):
    """What stands for one secret."""

    text: str
    n_sign: int
    """So many of its first characters tell it from everything else."""
    secret: str

    def __repr__(self) -> str:  # the rest is a secret
        return f"<placeholder {self.text}>"

    @property
    def sign(self) -> str:
        return self.text[: self.n_sign]


class Redaction(msgspec.Struct, frozen=True):
    """Texts without their secrets."""

    before: str
    after: str
    others: tuple[str, ...] = ()
    hidden: tuple[Placeholder, ...] = ()
    at_cursor: bool = False
    """Whether the cursor stands in one, or directly before or behind it."""
    strays_tell: bool = True
    """Whether two words of the filling can be from a placeholder only: the texts have none of their own."""

    @property
    def found(self) -> bool:
        """Whether there was any secret."""
        return bool(self.hidden)

    def restore(self, answer: str, *, whole: bool) -> str:
        """What the model meant by its answer so far: secrets where it wrote placeholders, also cut-off or shortened ones.

        Nothing is left where the cursor touches a secret: whatever was said goes on with a placeholder.  Nor is anything from
        where words of the filling stand without their sign.  The result for a longer answer begins with the result for a shorter one.  `whole`: nothing more will come;
        until then a last piece that may become a placeholder is left out.
        """
        if not self.hidden:
            return answer
        if self.at_cursor:
            return ""
        restored: list[str] = []
        at = 0
        by_sign = {placeholder.sign: placeholder for placeholder in self.hidden}
        for match in re.finditer("|".join(map(re.escape, by_sign)), answer):
            if match.start() < at:
                continue
            placeholder = by_sign[match.group()]
            restored += (answer[at : match.start()], placeholder.secret)
            at = _end(answer, match.start(), placeholder)
        text = "".join(restored) + answer[at:]
        stray = _STRAY.search(text) if self.strays_tell else None
        if stray is not None:
            return text[: stray.start()]
        return text if whole else text[: len(text) - self._n_begun(answer[at:])]

    def _n_begun(self, text: str) -> int:
        """Characters at its end with which a placeholder begins."""
        longest = min(len(text), max(placeholder.n_sign for placeholder in self.hidden) - 1)
        begun = next((n for n in range(longest, 0, -1) if any(hidden.sign.startswith(text[-n:]) for hidden in self.hidden)), 0)
        filling = _STRAY_BEGUN.search(text[-_MOST_BEGUN:]) if self.strays_tell else None
        return max(begun, filling.end() - filling.start() if filling is not None else 0)


def has_secret(before: str, after: str) -> bool:
    """Whether a secret stands around the cursor; then what is remembered of the place stays in this process."""
    return bool(shapes.around(before, after))


def at_cursor(before: str, after: str) -> bool:
    """Whether the cursor stands in a secret, or directly before or behind one: whatever a model says there is made up from its placeholder."""
    text = before + after
    found = shapes.around(before, after)
    return bool(found) and _touches(_with_plain(text, found, _plain([text], [found])), len(before))


class Redactor:
    """With the key of one session: the same secret always gets the same placeholder, and who sees that cannot check a guess."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def redact(self, before: str, after: str, others: Sequence[str] = ()) -> Redaction:
        """The text before and after the cursor, and whatever else is shown: each without its secrets."""
        texts = [before + after, *others]
        spans = [shapes.around(before, after), *(shapes.find(text) for text in others)]
        if not any(spans):
            return Redaction(before, after, tuple(others))
        plain = _plain(texts, spans)
        spans = [_with_plain(text, found, plain) for text, found in zip(texts, spans, strict=True)]
        touches = _touches(spans[0], len(before))
        strays_tell = not any(pair in text for text in texts for pair in _PAIRS)
        spans[0] = _split(spans[0], len(before))
        hidden = {placeholder.secret: placeholder for placeholder in self._placeholders(dict.fromkeys(_pieces(texts, spans)), texts)}
        around, *shown = (_replaced(text, found, hidden) for text, found in zip(texts, spans, strict=True))
        kept = tuple(placeholder for placeholder in hidden.values() if placeholder.sign)
        return Redaction(around[: len(before)], around[len(before) :], tuple(shown), kept, touches, strays_tell)

    def _placeholders(self, secrets: Iterable[str], texts: Sequence[str]) -> Iterator[Placeholder]:
        shown = "\0".join(texts)
        signs: set[str] = set()
        begun: set[str] = set()
        for secret in secrets:
            sign = self._sign(secret, shown, signs, begun)
            signs.add(sign)
            begun.update(sign[:length] for length in range(_LEAST, len(sign) + 1))
            filling = itertools.islice(itertools.cycle(_FILLING if sign else "x"), len(secret) - len(sign))
            yield Placeholder(sign + "".join(filling), len(sign), secret)

    def _sign(self, secret: str, shown: str, signs: AbstractSet[str], begun: AbstractSet[str]) -> str:
        """What its placeholder begins with: nothing that is shown, nor begins another one or is begun by it; empty: there is none left."""
        for n_try in range(_MOST_TRIES if len(secret) >= _LEAST else 0):
            sign = self._drawn(secret, n_try)
            longer = sign in begun or any(sign[:length] in signs for length in range(_LEAST, len(sign)))
            if not longer and sign not in shown:
                return sign
        return ""

    def _drawn(self, secret: str, n_try: int) -> str:
        """Always the same for a secret; at another try another one."""
        n = len(secret)
        salt = n_try.to_bytes(8, "little")
        digest = hashlib.blake2b(secret.encode("utf-8", "surrogatepass"), key=self._key, salt=salt, digest_size=_N_TAG * 2).digest()
        letters = "".join((_VOWELS if at % 2 else _CONSONANTS)[byte % (4 if at % 2 else 16)] for at, byte in enumerate(digest))
        return f"{_SIGN}{letters[:_N_TAG]}" if n >= len(_SIGN) + _N_TAG else f"{_SHORT_SIGN}{letters}"[:n]


def _pieces(texts: Sequence[str], spans: Sequence[Sequence[Span]]) -> Iterator[str]:
    for text, found in zip(texts, spans, strict=True):
        yield from (text[first:last] for first, last in found)


def _plain(texts: Sequence[str], spans: Sequence[Sequence[Span]]) -> list[str]:
    """The secrets that are looked for everywhere."""
    return list(dict.fromkeys(secret for secret in _pieces(texts, spans) if len(secret) >= _PLAIN))[:_MOST_SOUGHT]


def _touches(spans: Sequence[Span], at: int) -> bool:
    return any(first <= at <= last for first, last in spans)


def _with_plain(text: str, spans: Sequence[Span], secrets: Sequence[str]) -> list[Span]:
    """And where one of the secrets stands with nothing around that says so."""
    found = list(spans)
    for secret in secrets:
        at = text.find(secret)
        while at >= 0:
            found.append((at, at + len(secret)))
            at = text.find(secret, at + len(secret))
    apart: list[Span] = []
    for span in sorted(found, key=lambda span: (span[0], -span[1])):
        if not apart or span[0] >= apart[-1][1]:
            apart.append(span)
    return apart


def _split(spans: Sequence[Span], at: int) -> list[Span]:
    """No piece on both sides of the cursor."""
    pieces: list[Span] = []
    for first, last in spans:
        pieces += [(first, at), (at, last)] if first < at < last else [(first, last)]
    return pieces


def _replaced(text: str, spans: Sequence[Span], hidden: Mapping[str, Placeholder]) -> str:
    pieces: list[str] = []
    end = 0
    for first, last in spans:
        pieces += (text[end:first], hidden[text[first:last]].text)
        end = last
    return "".join(pieces) + text[end:]


def _end(answer: str, start: int, placeholder: Placeholder) -> int:
    """Where what the model wrote of a placeholder ends, also if it went on with other words than its own."""
    end = start + _n_same(answer[start : start + len(placeholder.text)], placeholder.text)
    whole = end - start == len(placeholder.text)
    match = None if whole else _LOWER.match(answer, end)
    return match.end() if match is not None else end


def _n_same(a: str, b: str) -> int:
    """Characters with which both begin."""
    return next((n for n, (one, other) in enumerate(zip(a, b, strict=False)) if one != other), min(len(a), len(b)))
