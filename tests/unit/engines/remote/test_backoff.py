from __future__ import annotations

import pytest

from monkeycode_lsp.engines.remote import backoff
from monkeycode_lsp.errors import EngineBusyError, EngineError, EngineFaultError, EngineUnavailableError

DEAD = EngineUnavailableError("dead")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_one_failure_costs_no_rest_and_the_second_does() -> None:
    rest = backoff.Backoff(Clock())
    rest.failed(DEAD)
    rest.check()
    rest.failed(DEAD)
    with pytest.raises(EngineUnavailableError, match="dead"):
        rest.check()


def test_the_rest_grows_but_stays_below_two_seconds() -> None:
    clock = Clock()
    rest = backoff.Backoff(clock)
    for _ in range(50):
        rest.failed(DEAD)
    clock.now += 1.4
    with pytest.raises(EngineUnavailableError):
        rest.check()
    clock.now += 0.2
    rest.check()


def test_success_forgets_everything() -> None:
    rest = backoff.Backoff(Clock())
    for _ in range(3):
        rest.failed(DEAD)
    rest.succeeded()
    rest.check()
    rest.failed(DEAD)
    rest.check()


def test_a_failure_that_took_long_is_worth_a_rest_at_once() -> None:
    rest = backoff.Backoff(Clock())
    rest.failed(DEAD, slow=True)
    with pytest.raises(EngineUnavailableError):
        rest.check()


def test_a_look_ends_a_rest_after_failures_to_reach_it() -> None:
    rest = backoff.Backoff(Clock())
    rest.failed(DEAD, slow=True)
    rest.seen()
    assert rest.left_s == 0
    assert rest.error is None


@pytest.mark.parametrize("error", [EngineBusyError("wait", retry_after_s=30), EngineBusyError("busy"), EngineFaultError("500")])
def test_a_look_does_not_end_a_rest_that_has_another_reason(error: EngineError) -> None:
    rest = backoff.Backoff(Clock())
    rest.failed(error, slow=True)
    left_s = rest.left_s
    rest.seen()
    assert rest.left_s == left_s > 0


@pytest.mark.parametrize("late", [DEAD, EngineBusyError("busy"), EngineBusyError("wait", retry_after_s=1), None])
def test_how_an_older_ask_ends_does_not_shorten_a_rest_that_the_server_asked_for(late: EngineError | None) -> None:
    clock = Clock()
    rest = backoff.Backoff(clock)
    rest.failed(EngineBusyError("wait", retry_after_s=30))
    if late is None:
        rest.succeeded()
    else:
        rest.failed(late)
    clock.now += 29
    with pytest.raises(EngineBusyError, match="wait"):
        rest.check()
    clock.now += 2
    rest.check()
    rest.succeeded()
    assert rest.error is None


def test_a_server_may_ask_for_a_longer_rest_within_reason() -> None:
    clock = Clock()
    rest = backoff.Backoff(clock)
    rest.failed(EngineBusyError("wait", retry_after_s=1e9))
    clock.now += 59
    with pytest.raises(EngineBusyError):
        rest.check()
    clock.now += 2
    rest.check()
