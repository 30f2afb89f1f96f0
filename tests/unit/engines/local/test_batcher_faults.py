"""The batch loop where anything may fail at any time: nothing is lost, nothing is told twice, nothing is believed that is not so."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monkeycode_lsp.domain import Priority, Sampling
from monkeycode_lsp.engines.local.decoder import GenerationError
from monkeycode_lsp.engines.local.wire import Done
from tests.unit.engines.local.test_batcher import Loop, alone

TEXTS = ["the quick brown fox " * 10, "the quick brown dog " * 9, "jumps over " * 15, "it " * 40]


class Faults:
    """Batches that stop or fail half-way, and states that cannot be put back."""

    def __init__(self, runtime, random, *, stop=0.0, fail=0.0, lose=0.0):
        self._runtime, self._random = runtime, random
        self._stop, self._fail, self._lose = stop, fail, lose
        self._decode, self._restore = runtime.decode, runtime.restore
        runtime.decode, runtime.restore = self.decode, self.restore

    def decode(self, rows, should_stop):
        chance = self._random.random()
        if chance >= self._stop + self._fail:
            return self._decode(rows, should_stop)
        self._decode(rows[: self._random.randint(1, len(rows))], should_stop)
        if chance < self._stop:
            return False
        raise self._random.choice([GenerationError("decode", "broken"), ZeroDivisionError()])

    def restore(self, sequence, state):
        if self._random.random() >= self._lose:
            return self._restore(sequence, state)
        self._runtime.cells[sequence] = []
        return False


def check(loop):
    """What is believed of the slots is so."""
    seated = [run for run in loop.batcher._runs if run.slot is not None]
    assert [slot.taken for slot in loop.batcher._slots.all].count(True) == len({run.slot for run in seated}) == len(seated)
    assert [slot.tokens for slot in loop.batcher._slots.all] == loop.runtime.cells
    for run in seated:
        assert run.slot.taken
        assert run.slot.tokens == run.tokens[: len(run.slot.tokens)]
        assert run.n_missing > 0


def ask(loop, random):
    """Begin any ask; its text and how it was asked."""
    which, at = random.randrange(len(TEXTS)), random.randrange(100)
    text = TEXTS[which][:at] + random.choice(["", "a", "abc\n"]) + TEXTS[which][at + random.randrange(20) :]
    more = {
        "session": random.choice(["", str(which)]),
        "priority": random.choice(list(Priority)),
        "max_tokens": random.choice([0, 1, 8, 30]),
        "sampling": Sampling(temperature=1.0, seed=random.choice([None, 3])) if random.random() < 0.2 else Sampling(),
    }
    draft = alone(text, **more)[: random.randrange(30)] + random.choice(["", "zz"])
    return loop.begin(text, draft=draft, **more), (text, more)


@pytest.mark.parametrize("faults", [{}, {"stop": 0.1}, {"stop": 0.05, "fail": 0.02}, {"lose": 0.5}])
@pytest.mark.parametrize("can_cut", [True, False])
@settings(max_examples=25, deadline=None)
@given(
    random=st.randoms(use_true_random=False),
    n_slots=st.integers(1, 4),
    shelf_bytes=st.sampled_from([0, 3000, 1 << 20]),
)
def test_each_ask_ends_once_and_what_is_said_is_right(faults, can_cut, *, random, n_slots, shelf_bytes):
    loop = Loop(n_sequences=n_slots, can_cut=can_cut, shelf_bytes=shelf_bytes)
    Faults(loop.runtime, random, **faults)
    asked = {}
    for _ in range(random.randrange(12)):
        job, asked[job] = ask(loop, random)
        for _ in range(random.randrange(7)):
            loop.step()
            check(loop)
        one = random.choice(sorted(asked))
        if random.random() < 0.2:
            loop.cancelled.add(one)
        elif random.random() < 0.1 and not loop.over(one):
            loop.batcher.drop(one)
            del asked[one]
    for _ in range(20_000):
        if not loop.batcher.busy:
            break
        loop.step()
        check(loop)
    assert loop.runtime.n_open == 0
    for job, (text, more) in asked.items():
        assert loop.over(job)
        if isinstance(loop.end(job), Done):
            whole = alone(text, **more)
            assert loop.text(job) == (whole[: len(loop.text(job))] if loop.end(job).finish == "cancelled" else whole)
