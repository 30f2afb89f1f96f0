"""Tokens that are words, and a simulated model that says what it was told, at the costs of a real one."""

from __future__ import annotations

import re
from bisect import bisect_left

from monkeycode_lsp.engines.local.batch.costs import Costs
from monkeycode_lsp.engines.local.batch.drafts import Drafter
from monkeycode_lsp.engines.local.batch.odds import Odds

CURVE = {1: 17, 2: 42, 3: 51, 4: 54, 5: 70, 8: 75, 9: 92, 16: 102, 17: 122, 32: 190, 64: 332, 128: 640}
"""Milliseconds by rows, measured with a 0.5B model on two processors."""
CONTROL = 0


def real_ms(n_rows):
    """What a decode takes."""
    counts = list(CURVE)
    at = bisect_left(counts, n_rows)
    if counts[at] == n_rows:
        return CURVE[n_rows]
    low, high = counts[at - 1], counts[at]
    return CURVE[low] + (CURVE[high] - CURVE[low]) * (n_rows - low) / (high - low)


def ends(token):
    return token == CONTROL


class Words:
    """A vocabulary that grows with what it is asked for; token 0 is a control token."""

    def __init__(self):
        self.pieces = [b""]
        self._numbers = {b"": CONTROL}
        self.n_tokenized = 0

    def token(self, piece):
        if piece not in self._numbers:
            self._numbers[piece] = len(self.pieces)
            self.pieces.append(piece)
        return self._numbers[piece]

    def tokenize(self, text):
        self.n_tokenized += 1
        return [self.token(word.encode()) for word in re.findall(r" ?\w+|\s+|[^\w\s]", text)]

    def piece(self, token):
        return self.pieces[token]


class Machine:
    """A process that answers one run after the other, and keeps what it learns."""

    def __init__(self, *, measured=True):
        self.words = Words()
        self.costs = Costs()
        self.odds = Odds()
        self.spent_ms = 0.0
        if measured:
            for n_rows, ms in CURVE.items():
                self.costs.observe(n_rows, ms)

    def drafter(self, text="", prompt=(), **more):
        return Drafter(
            text=text,
            prompt=prompt,
            tokenize=self.words.tokenize,
            piece=self.words.piece,
            odds=self.odds,
            costs=self.costs,
            ends=ends,
            **more,
        )

    def run(self, answer, drafter=None, *, extra_ms=lambda: 0.0):
        """Milliseconds of an answer, from its first token on, which comes with the prompt."""
        said = [answer[0]]
        started = self.spent_ms
        while len(said) < len(answer):
            proposed = drafter.propose(said, len(answer) - len(said) - 1) if drafter else []
            assert len(proposed) <= len(answer) - len(said) - 1
            ms = real_ms(1 + len(proposed))
            self.costs.observe(1 + len(proposed), ms)
            self.spent_ms += ms + extra_ms()
            rest = answer[len(said) :]
            n_right = next((n for n, token in enumerate(proposed) if token != rest[n]), len(proposed))
            said += rest[: n_right + 1]
            if proposed:
                drafter.judged(len(proposed), n_right)
        return self.spent_ms - started


def alone_ms(answer):
    """The same without proposals."""
    return real_ms(1) * (len(answer) - 1)
