"""The batch loop: which tokens of which generations are decoded next, and what comes of it.

One decode serves the most urgent runs that have a slot.  Among equals the one goes first that has had the least
of the decoder for what it does now, reading or writing, so that a short answer never queues behind a long prompt, and
no window starves.  A prompt is read in chunks, alone; runs that write share a decode where that is cheaper here than one
decode each.  Nothing here knows a library: see `runtime`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Iterable, Sequence

import msgspec

from monkeycode_lsp.domain import Priority
from monkeycode_lsp.engines.local.batch.costs import Costs
from monkeycode_lsp.engines.local.batch.drafts import Drafter, Proposer
from monkeycode_lsp.engines.local.batch.odds import Odds
from monkeycode_lsp.engines.local.batch.run import Finish, Run
from monkeycode_lsp.engines.local.batch.runtime import Row, Runtime
from monkeycode_lsp.engines.local.batch.shelf import Shelf
from monkeycode_lsp.engines.local.batch.slots import WORTH, Slot, Slots
from monkeycode_lsp.engines.local.batch.tokens import common_prefix
from monkeycode_lsp.engines.local.decoder import GenerationError, Step
from monkeycode_lsp.engines.local.wire import Failed, Generate, Totals

logger = logging.getLogger(__name__)

_SHARED_CHUNK = 64
"""Most tokens of a prompt that are read at once while others wait: they wait for one chunk."""
_MOST_DRAFTED = 32
_TURN_MS = 200.0
"""Where there are more equal asks than slots: so much more than another a run may have had before it gives way."""
_STARVING_S = 2.0
"""Who got nothing for so long goes first, whatever it had."""

Part = tuple[Run, list[int], list[int]]
"""A run's share of a decode: tokens that it lacks, and tokens that are proposed to follow them."""


class Batcher:
    """Runs generations on a runtime, a step at a time.  See `Decoder.begin`, `step` and `drop`."""

    def __init__(
        self,
        runtime: Runtime,
        *,
        shelf: Shelf,
        drafts: bool = True,
        proposer: Proposer | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        # The mutable state is the runs that are not over, what the next step will tell, and what was learned:
        # costs, odds, totals.  All of it belongs to the decode thread; `totals` is replaced whole.
        self._runtime = runtime
        self._slots = Slots(runtime, shelf)
        self._drafts = drafts
        self._proposer = proposer
        self._clock = clock
        self._costs = Costs()
        self._odds = Odds()
        self._runs: list[Run] = []
        self._steps: list[Step] = []
        self._n_begun = 0
        self.totals = Totals()

    @property
    def busy(self) -> bool:
        """See `Decoder.busy`."""
        return bool(self._runs or self._steps)

    def begin(self, job: Hashable, ask: Generate, is_cancelled: Callable[[], bool]) -> None:
        """See `Decoder.begin`."""
        self._n_begun += 1
        self._count(asks=1)
        try:
            run = Run(job, ask, is_cancelled, runtime=self._runtime, number=self._n_begun, began=self._clock())
        except GenerationError as exc:
            self._steps.append(Step(job, Failed(ask.id, exc.kind, exc.message, limit_tokens=exc.limit_tokens)))
            return
        if self._drafts and ask.max_tokens > 1:
            run.drafter = Drafter(
                text=ask.heal + ask.draft if ask.draft else "",
                prompt=run.tokens,
                tokenize=self._runtime.tokenize,
                piece=self._runtime.piece,
                ends=self._runtime.ends,
                odds=self._odds,
                costs=self._costs,
                proposer=self._proposer,
            )
        for other in self._runs:
            if ask.session and (other.ask.session, other.ask.priority) == (ask.session, ask.priority):
                # The user has moved on from it, unless it is another candidate.
                other.n_passed += other.ask.segments != ask.segments
        self._runs.append(run)

    def drop(self, job: Hashable) -> None:
        """See `Decoder.drop`."""
        for run in [run for run in self._runs if run.job == job]:
            self._let_go(run)
        self._steps = [step for step in self._steps if step.job != job]

    def step(self, is_urgent: Callable[[Priority], bool]) -> list[Step]:
        """See `Decoder.step`."""
        for run in [run for run in self._runs if run.is_cancelled()]:
            self._finish(run, "cancelled")
        self._seat()
        parts = self._plan()
        if parts:
            self._decode(parts, is_urgent)
        steps, self._steps = self._steps, []
        return steps

    def put_all_away(self) -> None:
        """All KV states go to the shelf, before the model is freed."""
        self._slots.put_all_away()

    # Which runs have a slot.

    def _seat(self) -> None:
        """Give slots to the runs that wait, the most urgent first; less urgent ones make room, and equal ones that had more."""
        now = self._clock()
        for run in sorted((run for run in self._runs if run.slot is None), key=lambda run: _turn(run, now)):
            free = [slot for slot in self._slots.all if not slot.taken]
            holders = {other.slot: other for other in self._runs if other.slot and self._gives_way(other, run)}
            if not free and not holders:
                return  # nor is there one for those that come after it
            if self._reads_it_for(run):
                continue
            free += [
                slot
                for slot, other in holders.items()
                if other.ask.priority > run.ask.priority and common_prefix(slot.tokens, run.tokens) >= WORTH
            ]
            if not free:
                free = [max(holders, key=lambda slot: (holders[slot].ask.priority, holders[slot].spent_ms, holders[slot].number))]
            slot = self._slots.take(run.tokens, run.ask.session, free=free)
            if slot in holders:
                holders[slot].unseat()
            run.seat(slot)

    def _gives_way(self, holder: Run, run: Run) -> bool:
        """Whether one that has a slot leaves it to one that has none.  It goes on later, from its saved state."""
        if holder.ask.priority != run.ask.priority:
            return holder.ask.priority > run.ask.priority
        return self._slots.keep_all and holder.spent_ms > run.spent_ms + _TURN_MS

    def _reads_it_for(self, run: Run) -> bool:
        """Whether another run is just reading what this one would read too: then it waits, and takes a copy."""
        if run.spent_ms:
            return False
        if run.follows is not None and run.follows.slot is not None and len(run.follows.slot.tokens) < run.n_shared:
            return True
        for other in self._runs:
            if other.slot is None or other.ask.priority > run.ask.priority:
                continue
            least = len(other.slot.tokens) + WORTH
            most = min(other.n_prompt, len(run.tokens) - 1)
            if least <= most and (shared := min(common_prefix(other.tokens, run.tokens), most)) >= least:
                run.follows, run.n_shared = other, shared
                return True
        return False

    # What is decoded next.

    def _plan(self) -> list[Part]:
        seated = [run for run in self._runs if run.slot is not None]
        if not seated:
            return []
        urgent = min(run.ask.priority for run in seated)
        now = self._clock()
        at_work = [run for run in seated if run.ask.priority == urgent]
        at_work.sort(key=lambda run: (now - run.served_at < _STARVING_S, run.spent_ms, run.number))
        first = at_work[0]
        if first.n_missing > 1:
            n = self._runtime.batch_tokens if len(self._runs) == 1 else min(_SHARED_CHUNK, self._runtime.batch_tokens)
            return [(first, self._missing(first, n), [])]
        writing = [run for run in at_work if run.n_missing == 1 and not run.is_alone][: self._runtime.batch_tokens]
        if not first.is_alone and len(writing) > 1 and self._costs.pays_together(len(writing)):
            # Neighbouring caches are decoded in one go, others in several.
            writing.sort(key=lambda run: run.slot.number if run.slot else 0)
            return [(run, self._missing(run, 1), []) for run in writing]
        return [(first, self._missing(first, 1), self._proposed(first))]

    def _missing(self, run: Run, n: int) -> list[int]:
        held = len(run.tokens) - run.n_missing
        return run.tokens[held : held + n]

    def _proposed(self, run: Run) -> list[int]:
        if run.drafter is None or not run.may_draft or run.is_alone or not self._drafts:
            return []
        left = run.most_generated - run.n_generated - 1
        limit = min(left, _MOST_DRAFTED, self._runtime.batch_tokens - 1, self._runtime.context_tokens - len(run.tokens))
        return run.drafter.propose(run.tokens[run.n_prompt :], limit) if limit > 0 else []

    # Decoding, and what comes of it.

    def _decode(self, parts: Sequence[Part], is_urgent: Callable[[Priority], bool]) -> None:
        rows = [row for part in parts for row in _rows(part)]
        runs = [run for run, _, _ in parts]
        urgent = runs[0].ask.priority
        began = self._clock()
        try:
            whole = self._runtime.decode(rows, lambda: is_urgent(urgent) or all(run.is_cancelled() for run in runs))
            spent_ms = (self._clock() - began) * 1e3
            self._share_out(runs, spent_ms)
            if not whole:
                for run in runs:
                    self._cut_back(run)
                return
            if all(row.wanted for row in rows):  # a row without logits costs less
                self._costs.observe(len(rows), spent_ms)
            at = 0
            for part in parts:
                try:
                    self._take_in(part, at)
                except GenerationError as exc:  # nothing may follow by its grammar
                    self._fail([part[0]], exc)
                at += len(part[1]) + len(part[2])
        except GenerationError as exc:
            self._fail(runs, exc)
        except Exception as exc:
            # One broken ask must not take the model from all windows.
            logger.exception("A step of the engine failed.")
            self._fail(runs, GenerationError("internal", f"{type(exc).__name__} in the engine process."))

    def _share_out(self, runs: Sequence[Run], spent_ms: float) -> None:
        now = self._clock()
        for run in runs:
            run.spent_ms += spent_ms / len(runs)
            run.served_at = now
        self._count(busy_s=spent_ms / 1e3)

    def _take_in(self, part: Part, at: int) -> None:
        """A run's rows were decoded, the first of them as row `at` of the batch."""
        run, tokens, proposed = part
        slot = run.slot
        if slot is None:
            raise RuntimeError("a run without a slot was decoded")
        run.has_read(len(tokens))
        slot.tokens += tokens
        if run.n_missing > 0:
            return
        if not run.n_generated:
            run.spent_ms = 0.0  # what reading took is no reason to let an answer wait for another prompt
        finish = self._say(run, slot, proposed, at + len(tokens) - 1) if run.most_generated else "length"
        if piece := run.piece():
            self._steps.append(Step(run.job, piece))
        if finish is not None:
            self._finish(run, finish)

    def _say(self, run: Run, slot: Slot, proposed: list[int], at: int) -> Finish | None:
        """Draw after row `at` and after each proposed token, as long as the draw is what was proposed."""
        finish: Finish | None = None
        n_right = 0
        for row, guess in enumerate((*proposed, None), at):
            token, logprob = run.draw(row)
            finish = run.say(token, logprob)
            n_right += token == guess
            if token != guess or finish is not None:
                break
            slot.tokens.append(token)
        if proposed:
            run.judged(len(proposed), n_right)
            if not self._slots.resync(slot, len(slot.tokens)):
                self._drafts = False  # this kind of cache cannot be cut: a wrong guess costs everything that was read
        return finish

    def _cut_back(self, run: Run) -> None:
        if run.slot is not None:
            self._slots.resync(run.slot, len(run.slot.tokens))

    def _finish(self, run: Run, finish: Finish) -> None:
        done = run.done(finish)
        self._count(
            cancelled=int(finish == "cancelled"),
            reused=done.reused,
            read=done.read,
            generated=done.generated,
            drafted=done.drafted,
            accepted=done.accepted,
        )
        self._steps.append(Step(run.job, done))
        self._let_go(run)

    def _fail(self, runs: Iterable[Run], error: GenerationError) -> None:
        for run in runs:
            if run not in self._runs:
                continue
            self._steps.append(Step(run.job, Failed(run.ask.id, error.kind, error.message, limit_tokens=error.limit_tokens)))
            if run.slot is not None:
                self._slots.empty(run.slot)
            self._let_go(run)

    def _let_go(self, run: Run) -> None:
        self._runs.remove(run)
        run.close()
        if run.slot is not None:
            self._slots.release(run.slot)
            run.unseat()

    def _count(self, **more: float) -> None:
        totals = self.totals
        self.totals = msgspec.structs.replace(totals, **{name: getattr(totals, name) + value for name, value in more.items()})


def _turn(run: Run, now: float) -> tuple[int, int, bool, int, int]:
    """By urgency; then the newest of each document; then who has waited for long; then who has the least to read."""
    return int(run.ask.priority), run.n_passed, now - run.served_at < _STARVING_S, run.n_missing, run.number


def _rows(part: Part) -> list[Row]:
    run, tokens, proposed = part
    if run.slot is None:
        raise RuntimeError("a run without a slot was planned")
    at, number = len(run.slot.tokens), run.slot.number
    last = len(tokens) - 1
    is_end = run.n_missing == len(tokens) and run.most_generated > 0
    rows = [Row(token, at + n, number, is_end and n == last) for n, token in enumerate(tokens)]
    return rows + [Row(token, at + len(tokens) + n, number, wanted=True) for n, token in enumerate(proposed)]
