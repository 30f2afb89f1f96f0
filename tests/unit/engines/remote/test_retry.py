from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.engines.remote.pool import retry
from monkeycode_lsp.engines.remote.pool.retry import Tried
from monkeycode_lsp.errors import (
    ContextOverflowError,
    EngineBusyError,
    EngineError,
    EngineRefusedError,
    EngineUnavailableError,
    StreamBrokenError,
)

DEAD = EngineUnavailableError("dead")
BUSY = EngineBusyError("busy")
REFUSED = EngineRefusedError("no")
BROKEN = StreamBrokenError("broken")
TOO_LONG = ContextOverflowError("too long")


def wait_s(error: EngineError, *, drawn: float = 0.5, **tried: Any) -> float | None:
    return retry.wait_s(error, Tried(**{"n_left": 2, "left_s": 10.0, "another": False} | tried), lambda: drawn)


@pytest.mark.parametrize("error", [DEAD, BUSY, REFUSED, BROKEN])
def test_another_server_is_asked_at_once(error: EngineError) -> None:
    assert wait_s(error, another=True, rest_s=1.0) == 0


@pytest.mark.parametrize("error", [DEAD, REFUSED, BROKEN])
def test_a_server_that_is_dead_or_says_no_is_not_asked_again(error: EngineError) -> None:
    assert wait_s(error) is None


def test_a_prompt_that_is_too_long_is_too_long_everywhere() -> None:
    assert wait_s(TOO_LONG, another=True) is None


@pytest.mark.parametrize("tried", [{"n_left": 0}, {"left_s": 0.0}])
@pytest.mark.parametrize("error", [DEAD, BUSY, REFUSED, BROKEN])
def test_tries_and_time_have_an_end(error: EngineError, tried: dict[str, Any]) -> None:
    assert wait_s(error, another=True, **tried) is None


def test_a_busy_server_is_asked_again_when_it_says() -> None:
    told = EngineBusyError("busy", retry_after_s=3.0)
    assert 3.0 <= (wait_s(told, rest_s=3.0) or 0) <= 3.5
    assert wait_s(told, rest_s=3.0, left_s=2.0) is None


def test_a_busy_server_that_says_nothing_is_asked_once_more_soon_and_then_left_to_the_next_key() -> None:
    assert 0 <= (wait_s(BUSY, drawn=1.0) or 0) <= retry.FIRST_S
    assert wait_s(BUSY, rest_s=0.5) is None


@pytest.mark.parametrize(
    ("drawn", "n_waits", "seconds"),
    [(0.5, 0, 0.05), (1.0, 0, 0.1), (0.25, 1, 0.05), (1.0, 1, 0.2), (1.0, 3, 0.8), (0.5, 4, 0.8), (1.0, 5, 2.0), (0.5, 20, 1.0)],
)
def test_the_blind_wait_is_drawn_and_its_range_doubles_with_each_wait_up_to_the_longest(drawn: float, n_waits: int, seconds: float) -> None:
    assert wait_s(BUSY, drawn=drawn, n_waits=n_waits) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("drawn", "rest_s", "seconds"), [(0.0, 3.0, 3.0), (0.5, 3.0, 3.15), (1.0, 3.0, 3.3), (0.0, 0.0, 0.1), (1.0, 0.0, 0.11)]
)
@pytest.mark.parametrize("n_waits", [0, 3])
def test_those_who_were_told_the_same_time_come_back_a_little_apart(drawn: float, rest_s: float, seconds: float, n_waits: int) -> None:
    told = EngineBusyError("busy", retry_after_s=rest_s)
    assert wait_s(told, drawn=drawn, rest_s=rest_s, n_waits=n_waits) == pytest.approx(seconds)


@given(st.floats(0, 1), st.integers(0, 20), st.floats(0.01, 60))
def test_the_blind_wait_is_drawn_from_a_range_that_doubles_and_ends(drawn: float, n_waits: int, left_s: float) -> None:
    seconds = wait_s(BUSY, drawn=drawn, n_waits=n_waits, left_s=left_s)
    assert seconds is None or 0 <= seconds <= min(retry.LONGEST_S, retry.FIRST_S * 2**n_waits)
    assert seconds is None or seconds < left_s
