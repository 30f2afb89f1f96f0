"""Show it or stay quiet?  By the odds of the suggestion, corrected by what this user has made of such ones.

Invariants: what the user asked for by key is shown; what stands on the screen is not taken away while he types along
with it; of the places where it would be quiet, every eighth is shown, so that it can learn that it is wrong.
"""

from __future__ import annotations

import bisect
from collections import OrderedDict
from collections.abc import Callable
from typing import Literal

import msgspec

from monkeycode_lsp import clock
from monkeycode_lsp.context import comments
from monkeycode_lsp.domain import Ask, Fate, Suggestion, Trigger, Window
from monkeycode_lsp.silence.history import EDGES, Counts, History
from monkeycode_lsp.silence.odds import odds

LEAST = 0.08
"""What is less likely to be wanted is not shown: of the answers that the odds were fitted to, a sixth, of the good ones among
them 1 of 68, and of those whose first line was exactly right none of 44."""
PRIOR = 30.0
"""So many suggestions of one bin have to be seen until the user counts as much as the odds."""
EVERY = 8
"""Of the places where it would be quiet, so many to one that is shown."""
CONFIRMED = 3
"""Characters that the user types as a suggestion says, until it is shown after all."""
MANY_NO = 3
"""So often in a row "no" makes it more careful …"""
CAREFUL_S = 60.0
"""… for so long, or until something is taken."""
_CAREFUL = 2.5
_DELETING = 1.5
"""Who deletes wants something else than what was there."""

LEFT = {Fate.IGNORED: 0.25, Fate.PARTIAL: 0.25, Fate.REJECTED: 1.0}
"""How much one that was not taken weighs against one that was: to look past a suggestion is the normal case."""
TAKEN = frozenset({Fate.ACCEPTED, Fate.TYPED, Fate.PARTIAL})

_TAIL = 200
_MOST_DOCUMENTS = 64


class Verdict(msgspec.Struct, frozen=True):
    """What is made of one suggestion."""

    reason: str = ""
    """Why it is not shown, in the user's words; empty: show it."""
    odds: float | None = None
    """The chance that it was given before anything is known of the user; None: the engine does not tell."""
    model: str = ""
    """Fingerprint of whom the fate of this suggestion tells something; empty: of nobody."""


class _Decided(msgspec.Struct, frozen=True):
    """The last verdict in one document, at the place where it was given first."""

    tail: str
    """The end of what was before the cursor there."""
    text: str
    """The suggestion there, or as much of it as there was."""
    verdict: Verdict


class Silence:
    """Of one user's window."""

    # The mutable state is the last verdicts by document, how many places were quiet since one was shown nevertheless,
    # where the last of them was, and the row of rejections; it changes in `judge` and `learn` only.

    def __init__(self, mode: Literal["auto", "off"], history: History, *, now: Callable[[], float] = clock.now) -> None:
        self._mode = mode
        self.history = history
        self._now = now
        self._decided: OrderedDict[str, _Decided] = OrderedDict()
        self._n_quiet = 0
        self._quiet_at: tuple[str, int] | None = None
        self._n_rejected = 0
        self._rejected_at = 0.0

    def judge(self, ask: Ask, window: Window, suggestion: Suggestion, model: str) -> Verdict:
        """Whether it is shown; `model` is the fingerprint of the one that said it."""
        uri = ask.snapshot.uri
        decided = self._continued(self._decided.pop(uri, None), window, suggestion.text) if ask.trigger is Trigger.AUTOMATIC else None
        if decided is None:
            decided = _Decided(window.prefix[-_TAIL:], suggestion.text, self._judge(ask, window, suggestion, model))
        self._decided[uri] = decided
        if len(self._decided) > _MOST_DOCUMENTS:
            self._decided.popitem(last=False)
        return decided.verdict

    def learn(self, verdict: Verdict, fate: Fate, share: float = 1.0) -> None:
        """What became of what was shown; `share` is the part of it that was taken."""
        if fate is Fate.REJECTED:
            self._n_rejected, self._rejected_at = self._n_rejected + 1, self._now()
        elif fate in TAKEN:
            self._n_rejected = 0
        if verdict.odds is None or not verdict.model or fate not in {*TAKEN, *LEFT}:
            return
        taken = min(1.0, max(0.0, share)) if fate in TAKEN else 0.0
        self.history.learn(verdict.model, bisect.bisect_right(EDGES, verdict.odds), taken=taken, left=LEFT.get(fate, 0.0) * (1 - taken))

    def _continued(self, before: _Decided | None, window: Window, text: str) -> _Decided | None:
        """The former verdict if this is still the same suggestion; None: it is another one."""
        n_typed = _typed(before, window, text) if before is not None else None
        if before is None or n_typed is None or not before.verdict.reason or n_typed < CONFIRMED:
            return before if n_typed is not None else None
        return msgspec.structs.replace(before, verdict=msgspec.structs.replace(before.verdict, reason=""))

    def _judge(self, ask: Ask, window: Window, suggestion: Suggestion, model: str) -> Verdict:
        chance: float | None = None
        if suggestion.confidence is not None:
            chance = odds(suggestion.confidence, suggestion.text, is_comment=comments.at_cursor(window))
        if ask.trigger is Trigger.INVOKED:
            return Verdict(odds=chance)
        if chance is None or suggestion.confidence is None or self._mode == "off":
            return Verdict(odds=chance, model=model)
        reason = self._doubt(ask, chance, suggestion.confidence, self.history.counts(model))
        if reason and self._explores(ask):
            reason = ""
        return Verdict(reason, chance, model)

    def _doubt(self, ask: Ask, chance: float, confidence: float, known: Counts) -> str:
        how = f"({confidence:.1f} per token; setting completion.silence)".replace("-", "\N{MINUS SIGN}")
        taken, left = known.bins[bisect.bisect_right(EDGES, chance)]
        likely = (PRIOR * chance + taken) / (PRIOR + taken + left)
        if likely < LEAST:
            return f"The model was not sure enough {how}." if chance < LEAST else f"You seldom take what the model is so unsure of {how}."
        if self._n_rejected >= MANY_NO and self._now() - self._rejected_at < CAREFUL_S and likely < LEAST * _CAREFUL:
            return f"You said no several times in a row, and the model was not sure enough {how}."
        if not ask.inserted and ask.since_edit_ms is not None and likely < LEAST * _DELETING:
            return f"You were deleting, and the model was not sure enough {how}."
        return ""

    def _explores(self, ask: Ask) -> bool:
        """Whether it is the turn of this place to be shown all the same; the keys of one line are one place."""
        at = (ask.snapshot.uri, ask.snapshot.line)
        if at != self._quiet_at:
            self._quiet_at = at
            self._n_quiet += 1
        if self._n_quiet < EVERY:
            return False
        self._n_quiet, self._quiet_at = 0, None
        return True


def _typed(before: _Decided, window: Window, text: str) -> int | None:
    """How much of the former suggestion was typed since, if `text` is the rest of it; None: it is another one."""
    for n in range(len(before.text), -1, -1):
        rest = before.text[n:]
        if rest and (rest.startswith(text) or text.startswith(rest)) and window.prefix.endswith(before.tail + before.text[:n]):
            return len("".join(before.text[:n].split()))
    return None
