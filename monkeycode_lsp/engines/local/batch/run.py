"""One generation inside the batch loop: what it has, what it still has to read, and what it says.

A run has tokens: its prompt and its answer so far.  Its slot holds a beginning of them.  Whatever is missing is
read next, be it a prompt's chunk or the one token that was drawn last; so a run can lose its slot at any
moment and go on in another one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Literal

from monkeycode_lsp.engines.local.batch.assembly import Assembler
from monkeycode_lsp.engines.local.batch.drafts import Drafter
from monkeycode_lsp.engines.local.batch.healing import Healing
from monkeycode_lsp.engines.local.batch.runtime import Runtime, Sampler
from monkeycode_lsp.engines.local.batch.slots import Slot
from monkeycode_lsp.engines.local.batch.tokens import prompt_tokens
from monkeycode_lsp.engines.local.decoder import GenerationError
from monkeycode_lsp.engines.local.wire import Delta, Done, Generate

Finish = Literal["stop", "length", "cancelled"]
_TOKEN_CHARACTERS = 32
"""No text has as many in every token.  What is longer is refused unread: cutting it into tokens holds up all others."""
LEAST_ANSWER = 16
"""A prompt that leaves less room than this (or than it asks for) is refused, so that the caller shortens it."""


class Run:
    """The mutable state changes in its methods only, on the decode thread."""

    def __init__(
        self, job: Hashable, ask: Generate, is_cancelled: Callable[[], bool], *, runtime: Runtime, number: int, began: float
    ) -> None:
        """Raises `GenerationError` for a prompt that cannot be answered."""
        self.job = job
        self.ask = ask
        self.is_cancelled = is_cancelled
        self.number = number
        """Its place in the order of arrival."""
        _check_length(ask, runtime.context_tokens)
        self.tokens = prompt_tokens(runtime, ask.segments)
        self.n_prompt = len(self.tokens)
        room = runtime.context_tokens - self.n_prompt
        if room < min(ask.max_tokens, LEAST_ANSWER):
            limit = runtime.context_tokens
            raise GenerationError("overflow", f"The prompt has {self.n_prompt} tokens, the window {limit}.", limit_tokens=limit)
        self.most_generated = min(max(0, ask.max_tokens), room)
        self.slot: Slot | None = None
        self.n_passed = 0
        """Newer asks of the same document."""
        self.follows: Run | None = None
        """The run that reads what this one would read too; it has a slot, or is over …"""
        self.n_shared = 0
        """… and its prompt begins with so many of these tokens."""
        self.served_at = began
        """When it was last decoded, by the batch loop's clock in seconds."""
        self.spent_ms = 0.0
        """Time of the decoder that it has had, for reading or, after that, for writing."""
        self.drafter: Drafter | None = None
        self.is_alone = ask.sampling.temperature > 0 and ask.sampling.seed is not None
        """Whether its tokens are decoded one by one: seeded dice must fall the same way again, whatever the rounding."""
        self._runtime = runtime
        self._sampler: Sampler | None = runtime.sampler(ask) if self.most_generated else None
        self._assembler = Assembler(ask.stop)
        self._healing = Healing(b"" if ask.grammar else ask.heal.encode("utf-8", errors="replace"))  # a grammar says itself how to begin
        self._reused: int | None = None
        self._n_read = 0
        self._told = False
        self._text = ""
        self._n_unsaid = 0
        self._logprob = 0.0
        self._drafted = 0
        self._accepted = 0

    @property
    def n_missing(self) -> int:
        """Tokens that its slot does not hold yet."""
        return len(self.tokens) - (len(self.slot.tokens) if self.slot else 0)

    @property
    def n_generated(self) -> int:
        return len(self.tokens) - self.n_prompt

    @property
    def may_draft(self) -> bool:
        """Whether proposals may follow what is read next: they are judged by the draw after it."""
        return self.drafter is not None and self.n_generated > 0 and self._healing.done

    def seat(self, slot: Slot) -> None:
        """Go on in this slot."""
        self.slot = slot
        self.follows = None  # or each run would keep the one before it alive
        if self._reused is None:
            self._reused = len(slot.tokens)

    def unseat(self) -> None:
        """Lose the slot; what was said is not lost."""
        self.slot = None

    def has_read(self, n_tokens: int) -> None:
        """So many of its missing tokens were read, or are to be read again (below 0); those of the prompt count."""
        held = len(self.slot.tokens) if self.slot else 0
        self._n_read += min(held + n_tokens, self.n_prompt) - min(held, self.n_prompt)

    def draw(self, row: int) -> tuple[int, float]:
        """The token after this row of the last batch."""
        if self._sampler is None:
            raise RuntimeError("a run that only reads has nothing to draw")
        return self._sampler.draw(row, self._among())

    def _among(self) -> Sequence[int] | None:
        """The only tokens that may be drawn while a cut-off beginning is healed."""
        return None if self._healing.done else self._runtime.fitting(self._healing.left)

    def say(self, token: int, logprob: float) -> Finish | None:
        """Take a token that was drawn; told is whether the answer is over with it."""
        if self._runtime.ends(token):
            self._text += self._assembler.finish()
            return "stop"
        self.tokens.append(token)
        piece = self._runtime.piece(token)
        was_done = self._healing.done
        fresh = piece if was_done else self._healing.take(piece)
        if was_done or fresh:  # what only spells the text before the cursor says nothing of the answer
            self._n_unsaid += 1
            self._logprob += logprob
        self._text += self._assembler.feed(fresh)
        if self._assembler.stopped:
            return "stop"
        if self.n_generated >= self.most_generated:
            self._text += self._assembler.finish()
            return "length"
        return None

    def judged(self, n_proposed: int, n_accepted: int) -> None:
        """So many tokens of a draft were right."""
        self._drafted += n_proposed
        self._accepted += n_accepted
        if self.drafter is not None and n_proposed:
            self.drafter.judged(n_proposed, n_accepted)

    def piece(self) -> Delta | None:
        """The text that has become certain since the last time; the first piece tells what reading the prompt cost."""
        if not self._text:
            return None
        reused, read = (None, None) if self._told else (self._reused or 0, self._n_read)
        delta = Delta(self.ask.id, self._text, self._n_unsaid, self._logprob, reused=reused, read=read)
        self._told, self._text, self._n_unsaid, self._logprob = True, "", 0, 0.0
        return delta

    def done(self, finish: Finish) -> Done:
        """The end of the answer."""
        return Done(
            self.ask.id,
            finish,
            reused=self._reused or 0,
            read=self._n_read,
            generated=self.n_generated,
            drafted=self._drafted,
            accepted=self._accepted,
        )

    def close(self) -> None:
        """Give back what the library holds for it."""
        if self._sampler is not None:
            self._sampler.close()
            self._sampler = None


def _check_length(ask: Generate, context_tokens: int) -> None:
    n_characters = sum(len(segment.text) for segment in ask.segments)
    if n_characters > context_tokens * _TOKEN_CHARACTERS:
        raise GenerationError(
            "overflow", f"The prompt has {n_characters} characters, the window {context_tokens} tokens.", limit_tokens=context_tokens
        )
