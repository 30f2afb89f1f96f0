from __future__ import annotations

import pytest

from monkeycode_lsp.engines.local.managed.tally import Tally
from monkeycode_lsp.engines.local.wire import Ended, FrameError, Totals


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def tally(clock):
    return Tally(clock)


def test_asks_are_counted_while_they_run_and_added_up_when_they_end(tally, clock):
    tally.began("a", 1)
    clock.now = 1.0
    tally.began("b", 1)
    assert (tally.n_running, tally.idle_since) == (2, None)
    clock.now = 3.0
    tally.ended("a", Ended(1, reused=5, read=7, generated=2))
    tally.ended("b", Ended(1, read=1, cancelled=True))
    assert (tally.n_running, tally.idle_since) == (0, 3.0)
    assert tally.totals == Totals(asks=2, cancelled=1, reused=5, read=8, generated=2, busy_s=3.0)
    clock.now = 9.0
    tally.began("a", 2)
    assert tally.totals.busy_s == 3.0


def test_the_asks_of_a_client_that_has_gone_are_cancelled(tally, clock):
    tally.began("a", 1)
    tally.began("a", 2)
    tally.began("b", 1)
    clock.now = 2.0
    tally.forget("a")
    tally.forget("a")
    assert (tally.n_running, tally.idle_since) == (1, None)
    tally.forget("b")
    assert tally.totals == Totals(asks=3, cancelled=3, busy_s=2.0)
    assert tally.idle_since == 2.0


def test_idleness_counts_from_when_there_can_be_asks(tally, clock):
    clock.now = 5.0
    tally.start()
    assert tally.idle_since == 5.0


def test_a_client_cannot_tell_an_ask_twice_or_the_end_of_none(tally):
    tally.began("a", 1)
    with pytest.raises(FrameError):
        tally.began("a", 1)
    for client, number in (("a", 2), ("b", 1)):
        with pytest.raises(FrameError):
            tally.ended(client, Ended(number))
    assert tally.n_running == 1


def test_a_client_cannot_make_it_grow_without_end(tally):
    for number in range(1_000):
        tally.began("a", number)
    with pytest.raises(FrameError):
        tally.began("a", 1_000)
    tally.began("b", 1)
