"""The way from the engine process to its window, measured with a decoder that only tells the time."""

from __future__ import annotations

import pytest

from monkeycode_lsp.bench import engine_ipc, processes
from monkeycode_lsp.bench.engine_ipc import Clock
from monkeycode_lsp.domain import Plain
from monkeycode_lsp.engines.local.wire import Delta, Done, Generate


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + bytes(100))
    return path


async def test_every_token_is_timed_and_none_arrives_before_it_was_sent(model, home):
    times = await engine_ipc.one_way_ms(model, 20)
    assert len(times) == 20
    assert all(0 < ms < 5_000 for ms in times)
    assert processes.wait_gone(home, 20) == []


def steps_of(clock, n):
    return [step for _ in range(n) for step in clock.step(lambda priority: False)]


def test_an_answer_has_as_many_tokens_as_were_asked_for():
    clock = Clock()
    clock.begin("a", Generate(1, (Plain("x"),), max_tokens=2), lambda: False)
    assert clock.busy
    events = [step.event for step in steps_of(clock, 3)]
    assert [type(event) for event in events] == [Delta, Delta, Done]
    assert (events[2].finish, events[2].generated) == ("length", 2)
    assert int(events[0].text) < int(events[1].text)
    assert not clock.busy


def test_a_cancelled_answer_ends_at_once():
    clock = Clock()
    clock.begin("a", Generate(1, (Plain("x"),), max_tokens=2), lambda: True)
    (step,) = steps_of(clock, 1)
    assert (step.job, step.event.finish) == ("a", "cancelled")
