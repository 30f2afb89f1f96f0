"""How the user types: the last keys, and how long the gaps after each kind of key are.

Immutable; what is learned is bounded and forgets.
"""

from __future__ import annotations

import math

import msgspec

GROUPS = {
    "lower": "word", "upper": "word", "digit": "word", "underscore": "word", "space": "space", "newline": "newline",
    "opener": "sign", "closer": "sign", "quote": "sign", "dot": "sign", "comma": "sign", "operator": "sign",
    "deletion": "deletion", "text": "text",
}  # fmt: skip
"""Kind of key → the kinds whose gaps are learned together."""
_CLOSES = {"(": ")", "[": "]", "{": "}", "<": ">", '"': '"', "'": "'", "`": "`"}
_SIGNS = {" ": "space", "\t": "space", "\n": "newline", ".": "dot", ",": "comma", ";": "comma", ":": "comma", "_": "underscore"} | dict.fromkeys(
    "([{<", "opener"
) | dict.fromkeys(")]}>", "closer") | dict.fromkeys("\"'`", "quote")  # fmt: skip
_N_GAPS = 4
_RUN_MS = 1_000.0
"""A longer gap ends a run of typing."""
_LONGEST_RUN = 99
_STEP = 0.06
"""How far one gap moves a quantile, in log; about the last fifty gaps count."""
_LEAST_MS, _MOST_MS = 20.0, 5_000.0


class Quantiles(msgspec.Struct, frozen=True):
    """Of the gaps after one group of keys."""

    p50_ms: float = 170.0
    p90_ms: float = 900.0

    def learned(self, gap_ms: float) -> Quantiles:
        """Both moved towards where half and nine tenths of the gaps are shorter."""
        p50 = self.p50_ms * math.exp(_STEP * (0.5 if gap_ms > self.p50_ms else -0.5))
        p90 = self.p90_ms * math.exp(_STEP * (0.9 if gap_ms > self.p90_ms else -0.1))
        p50 = min(max(p50, _LEAST_MS), _MOST_MS)
        return Quantiles(p50, min(max(p90, p50), _MOST_MS))


class Habit(msgspec.Struct, frozen=True):
    """Everything that is known of the typing at one moment, but the text."""

    gaps_ms: tuple[float, ...] = ()
    """The last gaps between keys, the newest first."""
    last: str = "lower"
    """Kind of the last key."""
    before: str = "lower"
    """Kind of the key before it."""
    run: int = 0
    """Keys typed without a pause."""
    deletions: int = 0
    """Deletions in a row, the last key included."""
    quantiles: dict[str, Quantiles] = {}
    """By group; never changed in place."""

    def with_key(self, gap_ms: float, inserted: str) -> Habit:
        """After one more key; the gap before it belongs to the key before."""
        kind = kind_of(inserted)
        group = GROUPS[self.last]
        return Habit(
            gaps_ms=(gap_ms, *self.gaps_ms[: _N_GAPS - 1]),
            last=kind,
            before=self.last,
            run=min(self.run + 1, _LONGEST_RUN) if gap_ms < _RUN_MS else 0,
            deletions=min(self.deletions + 1, _LONGEST_RUN) if kind == "deletion" else 0,
            quantiles={**self.quantiles, group: self.after(group).learned(gap_ms)},
        )

    def after(self, group: str) -> Quantiles:
        """The gaps that follow a group of keys."""
        return self.quantiles.get(group) or Quantiles()

    @property
    def unit_ms(self) -> float:
        """The user's usual gap inside a word: what all other gaps are measured by."""
        return self.after("word").p50_ms


def kind_of(inserted: str) -> str:
    """The kind of key that puts this in.  An editor's closing partner or indentation belongs to the key."""
    if not inserted:
        return "deletion"
    first = inserted[0]
    if len(inserted) > 1 and _CLOSES.get(first) != inserted[1:] and not (first == "\n" and not inserted.strip()):
        return "text"
    sign = _SIGNS.get(first)
    if sign:
        return sign
    if first.isalpha():
        return "lower" if first == first.lower() else "upper"
    return "digit" if first.isdigit() else "operator"
