from __future__ import annotations

import threading

import pytest

from monkeycode_lsp.domain import Priority
from monkeycode_lsp.engines.local.host.backlog import Backlog, Job
from monkeycode_lsp.engines.local.wire import Generate


class Owner:
    """Whoever asks."""


def job(owner, number, priority=Priority.INTERACTIVE):
    return Job(owner, Generate(number, (), priority=priority))


def drained(backlog):
    return [job.ask.id for job in backlog.drain()[0]]


def test_all_that_has_come_is_taken_up_at_once_in_the_order_in_which_it_came():
    backlog, owner = Backlog(), Owner()
    for number, priority in enumerate((Priority.BATCH, Priority.INTERACTIVE, Priority.LOOK_AHEAD)):
        backlog.put(job(owner, number, priority))
    assert drained(backlog) == [0, 1, 2]
    assert drained(backlog) == []
    assert [job.ask.id for job in backlog.at_work()] == [0, 1, 2]


def test_only_what_waits_and_is_more_urgent_is_urgent():
    backlog, owner = Backlog(), Owner()
    assert not backlog.is_urgent(Priority.BATCH)
    backlog.put(job(owner, 1, Priority.LOOK_AHEAD))
    assert [backlog.is_urgent(priority) for priority in Priority] == [False, False, True, True]
    backlog.put(job(owner, 2))
    assert [backlog.is_urgent(priority) for priority in Priority] == [False, True, True, True]
    backlog.cancel(owner, 2)
    assert not backlog.is_urgent(Priority.LOOK_AHEAD)
    backlog.drain()
    assert not backlog.is_urgent(Priority.BATCH)


def test_a_waiting_job_that_is_cancelled_is_handed_back_once_and_never_taken():
    backlog, owner = Backlog(), Owner()
    backlog.put(waiting := job(owner, 1))
    assert backlog.cancel(owner, 1) is waiting
    assert backlog.cancel(owner, 1) is None
    assert drained(backlog) == []
    assert backlog.n_unseen == 1


def test_a_job_at_work_is_told_of_its_cancel_and_answered_by_whoever_works_on_it():
    backlog, owner = Backlog(), Owner()
    backlog.put(job(owner, 1))
    [running], _ = backlog.drain()
    assert backlog.cancel(owner, 1) is None
    assert running.cancelled.is_set()
    assert backlog.done(running)
    assert not backlog.done(running)


def test_a_cancel_for_another_owner_with_the_same_number_does_nothing():
    backlog, one, other = Backlog(), Owner(), Owner()
    backlog.put(job(one, 1))
    assert backlog.cancel(other, 1) is None
    assert drained(backlog) == [1]


def test_an_owner_that_goes_takes_its_jobs_along():
    backlog, gone, stays = Backlog(), Owner(), Owner()
    backlog.put(job(gone, 1))
    [running], _ = backlog.drain()
    backlog.put(job(gone, 2))
    backlog.put(job(stays, 3))
    backlog.drop(gone)
    assert running.cancelled.is_set()
    come, dropped = backlog.drain()
    assert [job.ask.id for job in come] == [3]
    assert dropped == [running]
    assert not backlog.done(running)


def test_a_number_in_use_is_refused_and_free_again_when_done():
    backlog, owner = Backlog(), Owner()
    backlog.put(job(owner, 1))
    with pytest.raises(ValueError, match="in use"):
        backlog.put(job(owner, 1))
    [running], _ = backlog.drain()
    with pytest.raises(ValueError, match="in use"):
        backlog.put(job(owner, 1))
    backlog.done(running)
    assert backlog.put(job(owner, 1))


def test_one_owner_cannot_fill_the_queue():
    backlog, greedy, modest = Backlog(most_per_owner=2), Owner(), Owner()
    assert [backlog.put(job(greedy, number)) for number in range(3)] == [True, True, False]
    assert backlog.put(job(modest, 1))


@pytest.mark.parametrize("what", ["put", "drop", "wake"])
def test_whoever_waits_is_woken(what):
    backlog, owner = Backlog(), Owner()
    backlog.put(job(owner, 1))
    backlog.drain()
    thread = threading.Thread(target=backlog.wait)
    thread.start()
    assert thread.is_alive()
    {"put": lambda: backlog.put(job(owner, 2)), "drop": lambda: backlog.drop(owner), "wake": backlog.wake}[what]()
    thread.join(10)
    assert not thread.is_alive()


def test_it_is_idle_since_the_last_job_was_over():
    backlog, owner = Backlog(), Owner()
    first = backlog.idle_since
    assert first is not None
    backlog.put(job(owner, 1))
    assert backlog.idle_since is None
    [running], _ = backlog.drain()
    assert backlog.idle_since is None
    backlog.done(running)
    assert backlog.idle_since >= first
