from __future__ import annotations

import threading

import pytest

from monkeycode_lsp.domain import Priority
from monkeycode_lsp.engines.local.backlog import Backlog, Job
from monkeycode_lsp.engines.local.wire import Generate


class Owner:
    """Whoever asks."""


def job(owner, number, priority=Priority.INTERACTIVE):
    return Job(owner, Generate(number, (), priority=priority))


def taken(backlog):
    numbers = []
    while (next_job := backlog.take(0)) is not None:
        numbers.append(next_job.ask.id)
        backlog.done(next_job)
    return numbers


def test_the_urgent_come_first_then_the_newest_interactive_then_the_oldest():
    backlog, owner = Backlog(), Owner()
    for number, priority in enumerate(
        (Priority.BATCH, Priority.INTERACTIVE, Priority.LOOK_AHEAD, Priority.LOOK_AHEAD, Priority.INTERACTIVE)
    ):
        backlog.put(job(owner, number, priority))
    assert taken(backlog) == [4, 1, 2, 3, 0]


def test_a_waiting_job_that_is_cancelled_is_handed_back_once_and_never_taken():
    backlog, owner = Backlog(), Owner()
    backlog.put(waiting := job(owner, 1))
    assert backlog.cancel(owner, 1) is waiting
    assert backlog.cancel(owner, 1) is None
    assert taken(backlog) == []


def test_a_running_job_is_told_of_its_cancel_and_answered_by_whoever_runs_it():
    backlog, owner = Backlog(), Owner()
    backlog.put(job(owner, 1))
    running = backlog.take(0)
    assert backlog.cancel(owner, 1) is None
    assert running.cancelled.is_set()


def test_a_cancel_for_another_owner_with_the_same_number_does_nothing():
    backlog, one, other = Backlog(), Owner(), Owner()
    backlog.put(job(one, 1))
    assert backlog.cancel(other, 1) is None
    assert taken(backlog) == [1]


def test_an_owner_that_goes_takes_its_jobs_along():
    backlog, gone, stays = Backlog(), Owner(), Owner()
    backlog.put(job(gone, 1))
    running = backlog.take(0)
    backlog.put(job(gone, 2))
    backlog.put(job(stays, 3))
    backlog.drop(gone)
    assert running.cancelled.is_set()
    backlog.done(running)
    assert backlog.take(0).ask.id == 3


def test_a_number_in_use_is_refused_and_free_again_when_done():
    backlog, owner = Backlog(), Owner()
    backlog.put(job(owner, 1))
    with pytest.raises(ValueError, match="in use"):
        backlog.put(job(owner, 1))
    backlog.done(backlog.take(0))
    assert backlog.put(job(owner, 1))


def test_one_owner_cannot_fill_the_queue():
    backlog, greedy, modest = Backlog(most_per_owner=2), Owner(), Owner()
    assert [backlog.put(job(greedy, number)) for number in range(3)] == [True, True, False]
    assert backlog.put(job(modest, 1))


def test_an_owner_that_goes_lets_the_taker_look_round():
    backlog = Backlog()
    found = []
    thread = threading.Thread(target=lambda: found.append(backlog.take(30)))
    thread.start()
    backlog.drop(Owner())
    thread.join(10)
    assert found == [None]
